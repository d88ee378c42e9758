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
            target = getattr(binding.statement, "target", None)
            if isinstance(target, ast.Attribute) and target.attr == node.attr:
                if owners & origins(facts.values(target.value), *Role):
                    yield binding
        return
    unit: Unit | None = facts.unit(node)
    while unit is not None:
        found = [b for b in facts.bindings_in(unit) if b.target == node.id]
        yield from found
        if found or not isinstance(unit, Function) or node.id in unit.parameter_names:
            return
        unit = unit.parent or unit.module
