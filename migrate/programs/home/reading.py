"""What reads the loaders that are names of modules: prepare gives these another value for all who read them there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Module
from migrate.programs.home.naming import is_local
from migrate.programs.reach.outsiders import units_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.home.naming import Named
    from migrate.programs.program import Program


def needed(facts: Facts, program: Program, loaders: Iterable[Named]) -> Iterator[Named]:
    """Some loaders, but for those of modules that no training takes and that nothing reads to which the home leads."""
    inside = units_inside(facts, program)
    for named in loaders:
        is_taken = named.module is None or not named.origins.isdisjoint(program.training_loaders)
        if is_taken or any(reads(facts, unit, node, named) for unit in inside for node in facts.own(unit)):
            yield named


def reads(facts: Facts, unit: Unit, node: ast.AST, named: Named) -> bool:
    """Whether a node asks a module, or what one of its names holds, for an object."""
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
        return False
    if not origins(facts.values(node), Role.LOADER) & named.origins:
        return False
    if isinstance(unit, Module):
        return True
    if isinstance(node, ast.Name):
        return not is_local(unit, node.id)
    return any(value.role is Role.MODULE for value in facts.values(node.value))
