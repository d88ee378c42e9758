"""The statements that give a name or an attribute what it may be where it is read."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit


def bound_in_scope(facts: Facts, node: ast.Name | ast.Attribute) -> Iterator[Binding]:
    """The bindings of a name in its function or the next one around it; those of an attribute of the same object."""
    if isinstance(node, ast.Attribute):
        owners = origins(facts.values(node.value), *Role)
        for binding in facts.bindings:
            if not binding.target.endswith(f".{node.attr}"):
                continue
            named = (target for target in _targets(binding.statement) if isinstance(target, ast.Attribute))
            if any(t.attr == node.attr and owners & origins(facts.values(t.value), *Role) for t in named):
                yield binding
        return
    unit: Unit | None = facts.unit(node)
    while unit is not None:
        found = [b for b in facts.bindings_in(unit) if b.target == node.id]
        yield from found
        if found or not isinstance(unit, Function) or node.id in unit.parameter_names:
            return
        unit = unit.parent or unit.module


def _targets(statement: ast.stmt) -> list[ast.expr]:
    """What an assignment or a loop gives a value; nothing of other statements."""
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)) else []
