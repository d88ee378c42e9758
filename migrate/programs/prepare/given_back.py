"""Statements that give a name the object which it has: `model = model.to("cuda:0")`, `model = restore(model, path)`.

A function that returns what it was handed, and gives its parameter nothing else, makes no other object and wraps none.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.device.devices import is_move, is_to_cpu
from migrate.programs.values.sources import before_modes, passed

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Call, Function


def is_the_same(facts: Facts, statement: ast.stmt, target: str) -> bool:
    """Whether a statement gives a name what it holds already, where it may be, or set otherwise inside."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    to, value = statement.targets[0], statement.value
    if ast.unparse(to) == target:
        return _is_still(facts, value, target)
    names = [ast.unparse(each) for each in to.elts] if isinstance(to, ast.Tuple) else []
    if names.count(target) != 1 or not isinstance(value, ast.Call):
        return False
    return _is_given_back(facts, value, target, (names.index(target), len(names)))


def _is_still(facts: Facts, node: ast.expr, target: str) -> bool:
    """Whether an expression is the object under a name: moved, or given back by a function, if by nothing else."""
    node = before_modes(node)
    if not isinstance(node, ast.Call):
        return ast.unparse(node) == target
    if isinstance(node.func, ast.Attribute) and (is_move(facts, node) or is_to_cpu(facts, node)):
        return _is_still(facts, node.func.value, target)
    return _is_given_back(facts, node, target, None)


def _is_given_back(facts: Facts, call: ast.Call, target: str, part: tuple[int, int] | None) -> bool:
    """Whether all that a call may enter returns what it passes under a name, as one of so many parts of a tuple."""
    units = facts.targets(call)
    return len(units) == len(facts.values(call.func)) > 0 and all(
        _gives_back(facts, unit, call, target, part) for unit in units
    )


def _gives_back(facts: Facts, unit: Function, call: ast.Call, target: str, part: tuple[int, int] | None) -> bool:
    """Whether a function returns just what a call passes to it under a name."""
    whole = [node.value for node in facts.own(unit) if isinstance(node, ast.Return)]
    returned = whole if part is None else [_part(node, *part) for node in whole]
    names = {node.id for node in returned if isinstance(node, ast.Name) and node.id in unit.parameter_names}
    if len(names) != 1 or not all(isinstance(node, ast.Name) and node.id in names for node in returned):
        return False
    (name,) = names
    given = {binding.target for binding in facts.bindings_in(unit)}
    return name not in given and any(
        each.node is call and _is_passed(each, unit, name, target) for each in facts.callers(unit)
    )


def _is_passed(call: Call, unit: Function, name: str, target: str) -> bool:
    argument = passed(call, unit, name)
    return argument is not None and ast.unparse(argument) == target


def _part(node: ast.expr | None, position: int, length: int) -> ast.expr | None:
    """One of the parts of a tuple that is written out: `return model, optimizer, epoch`."""
    return node.elts[position] if isinstance(node, ast.Tuple) and len(node.elts) == length else None
