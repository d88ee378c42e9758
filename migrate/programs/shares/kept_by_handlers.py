"""What handlers of a step keep in an object that they are handed under a name of their own, and others read there.

    def add(engine):                                    def show(engine):
        engine.total += engine.output                       print(engine.total / engine.count)

Which handlers a loop calls by a name, after a batch or after an epoch, is not told apart.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.programs.shares.own_places import is_filling, own_places
from migrate.programs.values.below import below, object_of
from migrate.programs.values.kept import filled, place_of, root_of
from migrate.programs.values.readers import Loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
    from migrate.programs.loops import LoopFact


def kept_by_handlers(facts: Facts, loop: LoopFact) -> Iterator[tuple[ast.AST, str]]:
    """Where such handlers add to what they keep, and how they call it."""
    told: set[ast.AST] = set()
    for each in below(facts, loop.node):
        others = {*each.unit.parameter_names} - {object_of(each.unit)}
        kept = {place for place in own_places(facts, loop, each.unit.node) if root_of(place) in others - {place}}
        for node, place in _grown(facts, each.unit) if kept else ():
            if place in kept and node not in told and not each.shares(place):
                told.add(node)
                if _is_read(facts, each.unit, place):
                    yield node, place


def _grown(facts: Facts, unit: Function) -> Iterator[tuple[ast.AST, str]]:
    for node in facts.own(unit):
        into = node.target if isinstance(node, ast.AugAssign) else filled(node) if is_filling(node) else None
        yield from ((node, place) for place in place_of(into)) if into is not None else ()


def _is_read(facts: Facts, unit: Function, place: str) -> bool:
    """Whether another function reads an attribute, or an item of one, of the same object of the project."""
    holder = next(n for n in facts.own(unit).of(ast.Name) if n.id == root_of(place))
    objects = origins(facts.values(holder), Role.INSTANCE)
    path = place.partition("[")[0].removeprefix(root_of(place))
    for node in facts.once(Loaded).attributes.get(path.rpartition(".")[2], ()) if path and objects else ():
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and ast.unparse(node) == f"{root.id}{path}" and facts.unit(node) is not unit:
            if any(value.origin in objects for value in facts.values(root)):
                return True
    return False
