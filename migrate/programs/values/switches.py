"""Switches: `self.cuda = False`, which `if args.cuda: self.cuda = True` turns on, ask for what `args.cuda` asks for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.values.conditions import as_handed, bindings_of

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Class, Unit


def turned_on_by(facts: Facts, test: ast.expr) -> ast.expr:
    """The flag that a switch is set by; what is none, as it is."""
    if not isinstance(test, (ast.Name, ast.Attribute)):
        return test
    owner = _owner(facts.unit(test))
    found = {b.statement.lineno: b.statement for b in bindings_of(facts, test) if _owner(b.unit) is owner}
    on = [statement for statement in found.values() if _is_set_to(statement, value=True)]
    off = [statement for statement in found.values() if _is_set_to(statement, value=False)]
    if len(on) != 1 or not off or len(found) != len(off) + 1:
        return test
    asked = facts.tree(on[0]).parents[on[0]]
    if not isinstance(asked, ast.If) or on[0] not in asked.body:
        return test
    is_otherwise = all(statement in asked.orelse or _is_default(facts, statement) for statement in off)
    return as_handed(facts, asked.test) if is_otherwise else test


def _owner(unit: Unit) -> Class | None:
    return unit.owner if isinstance(unit, Function) else None


def _is_set_to(statement: ast.stmt, *, value: bool) -> bool:
    given = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(given, ast.Constant) and given.value is value


def _is_default(facts: Facts, statement: ast.stmt) -> bool:
    """Whether a statement of a constructor or a module runs whatever is asked."""
    unit, above = facts.unit(statement), facts.tree(statement).parents[statement]
    if isinstance(unit, Function):
        return unit.name == "__init__" and above is unit.node
    return above is unit.tree
