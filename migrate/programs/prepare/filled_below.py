"""Containers that are empty when objects are prepared, and get them afterwards: `models = []` … `models.append(model)`.

The trained models of several rounds, say, which are an ensemble: what is taken out of it are the prepared ones.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_stored, line_of
from migrate.programs.values.kept import FILLING, filled
from migrate.programs.values.new_lists import is_empty_list

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit
    from migrate.programs.stages import Stage

_DICTIONARIES = frozenset({"builtins.dict", "collections.OrderedDict"})


def is_filled_below(facts: Facts, binding: Binding, units: Collection[Unit], stage: Stage) -> bool:
    """Whether a statement makes an empty container, which only code below prepare fills."""
    made = origins(binding.values, Role.CONTAINER)
    value = getattr(binding.statement, "value", None)
    if not made or value is None or not _is_empty(facts, value):
        return False
    places = ((unit, node) for unit in units for node in facts.own(unit))
    return all(
        unit is stage.unit and line_of(node) > stage.end
        for unit, node in places
        if (container := _filled(node)) is not None and origins(facts.values(container), Role.CONTAINER) & made
    )


def _is_empty(facts: Facts, value: ast.expr) -> bool:
    match value:
        case ast.Dict(keys=[]):
            return True
        case ast.Call(args=[], keywords=[]) if facts.called(value) & _DICTIONARIES:
            return True
    return is_empty_list(facts, value)


def _filled(node: ast.AST) -> ast.expr | None:
    """The container that a call, an item or `+=` fills."""
    match node:
        case ast.Call(func=ast.Attribute(attr=method)) if method in FILLING:
            return filled(node)
        case ast.Subscript(value=container) if is_stored(node):
            return container
        case ast.AugAssign(target=container):
            return container
    return None
