"""What reads the loaders that are names of modules: prepare gives these another value for all who read them there."""

from __future__ import annotations

import ast
from itertools import islice
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_main_guard
from migrate.analysis.units import Function, Module, is_local, module_of
from migrate.programs.reach.outsiders import units_inside

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.home.naming import Named
    from migrate.programs.program import Program


_DATA = frozenset({"dataset"})  # attributes that a prepared loader has, too


def needed(facts: Facts, program: Program, loaders: Iterable[Named]) -> Iterator[Named]:
    """Some loaders, but for those of modules that no training takes and that nothing reads to which the home leads."""
    inside = units_inside(facts, program)
    for named in loaders:
        is_taken = named.module is None or not named.origins.isdisjoint(program.training_loaders)
        if is_taken or is_read(facts, inside, named):
            yield named


def is_read(facts: Facts, units: Iterable[Unit], named: Named) -> bool:
    """Whether one of some units asks for a loader where a module has it."""
    return any(reads(facts, unit, node, named) for unit in units for node in facts.own(unit))


def read_before(facts: Facts, home: Unit, inside: Collection[Unit], loaders: Iterable[Named]) -> Iterator[ast.AST]:
    """Where loaders are read by their names in a module, and their home, which reaches `inside`, does not come first.

    For each loader the first such place of each unit, in the order of units.
    """
    for named in (named for named in loaders if named.module is not None):
        for unit in sorted(facts.units, key=order):
            read = (node for node in facts.own(unit) if reads(facts, unit, node, named))
            found = (node for node in read if _is_before(facts, home, unit, node, named, is_inside=unit in inside))
            yield from islice(found, 1)


def order(unit: Unit) -> tuple[str, int]:
    """Units in the order of their files and lines."""
    return unit.module.path, unit.node.lineno if isinstance(unit, Function) else 0


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


def _is_before(facts: Facts, home: Unit, unit: Unit, node: ast.AST, named: Named, *, is_inside: bool) -> bool:
    tree = facts.tree(node)
    parent = tree.parents[node]
    if isinstance(parent, ast.Attribute) and parent.attr in _DATA:
        return False
    if is_inside:  # of another module it is the raw one, unless prepare changes the name there
        where = unit.module if isinstance(node, ast.Name) else named.module
        return where is not named.module
    is_imported = unit.module is not module_of(home)
    return not (is_imported and isinstance(unit, Module) and any(map(is_main_guard, tree.up(node))))
