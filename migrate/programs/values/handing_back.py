"""What functions give back of what they are handed: `model = restore(model)`, `model, epoch = load(model, path)`.

One that returns its parameter, alone or in one place of a tuple, and gives it nothing else, makes no other object.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.texts import text_of
from migrate.programs.values.sources import passed

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Call, Function


def is_handed_back(facts: Facts, statement: ast.AST, target: str) -> bool:
    """Whether a statement gives a name what it holds already, by a function that is handed it and gives it back.

    One that also returns nothing ends the program where a tuple is taken apart.
    """
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return False
    written = statement.targets[0]
    if not isinstance(written, ast.Tuple):
        return text_of(written) == target and gives_back(facts, statement.value, target)
    names = [text_of(each) for each in written.elts]
    is_plain = names.count(target) == 1 and not any(isinstance(each, ast.Starred) for each in written.elts)
    return is_plain and gives_back(facts, statement.value, target, names.index(target))


def gives_back(facts: Facts, call: ast.Call, target: str, place: int | None = None) -> bool:
    """Whether a call gives back just what it is passed under a name; `place`: in that place of a tuple."""
    units = facts.targets(call)
    return len(units) == len(facts.values(call.func)) > 0 and all(
        _returns(facts, unit, call, target, place) for unit in units
    )


def _returns(facts: Facts, unit: Function, call: ast.Call, target: str, place: int | None) -> bool:
    returned = [node.value for node in facts.own(unit).of(ast.Return)]
    if place is not None:
        returned = [_element(node, place) for node in returned if node is not None]
    names = {node.id for node in returned if isinstance(node, ast.Name) and node.id in unit.parameter_names}
    if len(names) != 1 or not all(isinstance(node, ast.Name) and node.id in names for node in returned):
        return False
    (name,) = names
    given = {binding.target for binding in facts.bindings_in(unit)}
    return name not in given and any(
        each.node is call and _is_passed(each, unit, name, target) for each in facts.callers(unit)
    )


def _element(node: ast.expr, place: int) -> ast.expr | None:
    """What stands in a place of a tuple that is written out."""
    is_written = isinstance(node, ast.Tuple) and place < len(node.elts)
    if not isinstance(node, ast.Tuple) or not is_written or any(isinstance(each, ast.Starred) for each in node.elts):
        return None
    return node.elts[place]


def _is_passed(call: Call, unit: Function, name: str, target: str) -> bool:
    argument = passed(call, unit, name)
    return argument is not None and ast.unparse(argument) == target
