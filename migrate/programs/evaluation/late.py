"""What an evaluation counts before it calls the model: nothing is lost if it does so when the batch is whole again.

total += images.size(0)
output = model(images)
->   output, target = accelerator.gather_for_metrics((output, target))
total += target.size(0)
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, roles
from migrate.analysis.syntax import reads, walk, writes
from migrate.analysis.units import Function, Module
from migrate.programs.evaluation.counted import is_count, only_moves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try)
_COMPUTED = (ast.Name, ast.Constant, ast.BinOp, ast.operator, ast.expr_context, ast.Attribute, ast.Subscript, ast.Call)


def counting_late(
    facts: Facts, before: Sequence[ast.stmt], last: ast.AST, later: Sequence[ast.stmt]
) -> tuple[ast.stmt, ...]:
    """The statements before the `last` code that comes before the gather which may as well run after that."""
    found: list[ast.stmt] = []
    for position, statement in enumerate(before):
        between = [each for each in before[position + 1 :] if each not in found]
        is_read = isinstance(statement, ast.AugAssign) or any(writes(statement) & reads(each) for each in later)
        if is_read and _counts_rows(facts, statement) and _can_wait(facts, statement, [*between, last]):
            found.append(statement)
    return tuple(found)


def _counts_rows(facts: Facts, statement: ast.stmt) -> bool:
    """`total += x.size(0)`, `rows = len(y)`: nothing else of a batch is looked at, and one plain name is given it."""
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, ast.AugAssign):
        targets, value = [statement.target], statement.value
    else:
        return False
    if len(targets) != 1 or not isinstance(targets[0], ast.Name) or not _is_local(facts, targets[0]):
        return False
    tree = facts.tree(statement)
    of_batch = [n for n in walk(value) if isinstance(n, ast.Name) and roles(facts.values(n)) & FROM_LOADER]
    if not of_batch or not all(is_count(tree, name) for name in of_batch):
        return False
    calls = [node for node in walk(value) if isinstance(node, ast.Call)]
    is_plain = all(isinstance(node, _COMPUTED) for node in walk(value))
    return is_plain and all(any(name in set(walk(call)) for name in of_batch) for call in calls)


def _is_local(facts: Facts, target: ast.Name) -> bool:
    """Whether no other function can read a name: none inside, of a name of the file none that has no such name."""
    unit, tree = facts.unit(target), facts.tree(target)
    if not isinstance(unit, Module) and any(
        isinstance(node, (ast.Global, ast.Nonlocal)) and target.id in node.names for node in facts.own(unit)
    ):
        return False
    named = (node for node in tree.nodes if isinstance(node, ast.Name) and node.id == target.id)
    reading = {facts.unit(node) for node in named}
    return all(
        each is unit or (each not in facts.nested(unit) and _has_own(facts, each, target.id)) for each in reading
    )


def _has_own(facts: Facts, unit: Unit, name: str) -> bool:
    if not isinstance(unit, Function):
        return True
    is_shared = any(isinstance(node, ast.Global) and name in node.names for node in facts.own(unit))
    is_bound = name in unit.parameter_names or any(each.target == name for each in facts.bindings_in(unit))
    return is_bound and not is_shared


def _can_wait(facts: Facts, statement: ast.stmt, between: Sequence[ast.AST]) -> bool:
    """Whether nothing in between reads what is counted, gives it a value, or changes what it is counted from."""
    given = writes(statement)
    for other in between:
        if any(isinstance(node, _LEAVING) for node in walk(other)) or given & (reads(other) | writes(other)):
            return False
        for name in (reads(statement) - given) & writes(other):
            if not isinstance(other, ast.stmt) or not only_moves(facts, other, name):
                return False
    return True
