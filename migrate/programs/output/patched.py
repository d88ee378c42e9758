"""Functions that change nothing but the DataParallel they are handed: what they do goes with it.

`patch_replication_callback(model)` tells the copies that DataParallel makes of one another, so that their layers share
statistics; on one device no copies are made, and these layers compute what plain ones do.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DATA_PARALLEL
from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

#: What a model has only while it is in DataParallel, beside `module`.
OF_WRAPPER = frozenset("device_ids output_device src_device_obj scatter gather replicate parallel_apply".split())


def patches(facts: Facts, models: Collection[ast.AST]) -> Iterator[ast.Call]:
    """The statements that hand one of these models to such a function."""
    for use in facts.calls:
        units = facts.targets(use.node)
        given = {origin for argument in use.node.args for origin in origins(facts.values(argument), Role.MODEL)}
        if units and given & set(models) and all(is_patching(facts, unit) for unit in units):
            yield use.node


def is_patching(facts: Facts, unit: Unit) -> bool:
    """Whether a function asserts that it has a DataParallel, sets what only that has, and gives nothing back.

    Each of its calls is a statement.
    """
    if not isinstance(unit, Function) or not isinstance(unit.node, ast.FunctionDef) or len(unit.positional) != 1:
        return False
    name = unit.positional[0].arg
    if not any(_is_asserted(facts, statement, name) for statement in unit.body):
        return False
    calls = facts.callers(unit)
    return all(_is_about(facts, statement, name) for statement in unit.body) and all(
        isinstance(facts.tree(call.node).parents[call.node], ast.Expr) for call in calls
    )


def _is_asserted(facts: Facts, statement: ast.stmt, name: str) -> bool:
    """`assert isinstance(data_parallel, DataParallel)`."""
    test = statement.test if isinstance(statement, ast.Assert) else None
    if not isinstance(test, ast.Call) or len(test.args) != 2 or "builtins.isinstance" not in facts.called(test):
        return False
    names = facts.names(test.args[1])
    return ast.unparse(test.args[0]) == name and bool(names) and names <= DATA_PARALLEL


def _is_about(facts: Facts, statement: ast.stmt, name: str) -> bool:
    """Whether a statement only asks or sets the wrapper, or makes a function for it."""
    if isinstance(statement, ast.Assign):
        is_plain = not any(isinstance(node, ast.Call) for node in ast.walk(statement.value))
        return is_plain and all(isinstance(target, ast.Name) or _is_part(target, name) for target in statement.targets)
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, ast.FunctionDef) or _is_asserted(facts, statement, name)


def _is_part(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Attribute) and target.attr in OF_WRAPPER and ast.unparse(target.value) == name
