"""Loaders that are read by the names that they had before prepare gave them others.

    def __init__(self, loader):
        self.loader = loader
        self.loader = accelerator.prepare(self.loader)
        self.steps = len(loader)                        # of the raw one: all data

Prepare stands above such a read, and yet it is the length of what prepare was given.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments, line_of
from migrate.analysis.units import Function
from migrate.programs.values.scopes import bound_in_scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.programs.stages import Stage


def is_former(facts: Facts, stage: Stage, name: ast.expr | None) -> bool:
    """Whether a name is that of a loader as it was handed to the function which prepares it, under another name."""
    unit = stage.unit
    if not isinstance(name, ast.Name) or not isinstance(unit, Function):
        return False
    made = origins(facts.values(name), Role.LOADER)  # not of an object that holds one: it gets the prepared one
    handed = {origin for origin in made if not facts.singles.is_made_in(unit, origin)}
    given = [named for named in stage.objects if named.origins & handed]
    if not given or any(named.module is not None for named in given):
        return False
    bindings = list(bound_in_scope(facts, name))
    if facts.unit(name) is unit:
        others = name.id not in {named.target for named in stage.objects}
        return others and name.id in unit.parameter_names and not bindings
    return _is_handed(facts, unit, name, bindings)


def _is_handed(facts: Facts, unit: Function, name: ast.Name, bindings: Iterable[Binding]) -> bool:
    """Whether code around a function hands it what is called so there, and gives that name nothing else below."""
    scopes = {binding.unit for binding in bindings} or {facts.unit(name)}
    for call in facts.callers(unit):
        handed = (each.id for each in arguments(call.node) if isinstance(each, ast.Name))
        if call.caller in scopes and name.id in handed:
            return all(line_of(binding.statement) < line_of(call.node) for binding in bindings)
    return False
