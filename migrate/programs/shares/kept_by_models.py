"""What a model adds up or collects itself of the batches that a training loop hands to its methods.

    for batch in loader:                 class Net(nn.Module):
        loss = net.step(batch)               def step(self, batch):
        ...                                      ...
    net.report()                                 self.losses.append(loss.item())

Each process has a model of its own, so what is read of it after the loop is of that process's batches.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import rounds
from migrate.analysis.units import Class, Function
from migrate.programs.shares.own_places import is_filling, own_places
from migrate.programs.shares.read_elsewhere import read_of_object
from migrate.programs.values.below import below, object_of
from migrate.programs.values.kept import filled, is_place, place_of, root_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

_DEEPEST = 2  # methods of the model between the loop and what keeps something


@dataclass(frozen=True, slots=True)
class KeptByModel:
    """One such attribute."""

    name: str  # as the loop's function would write it: `net.losses`
    is_read_after: bool  # not only in rounds of the loop


def kept_by_models(facts: Facts, loop: LoopFact) -> Iterator[KeptByModel]:
    """Such attributes that something reads, but for the methods themselves."""
    found: set[str] = set()
    in_rounds = set(rounds(loop.node))
    for call in rounds(loop.node).of(ast.Call):
        for method in _methods(facts, call):
            assert isinstance(call.func, ast.Attribute)
            inside = _inside(facts, loop, method)
            for place in sorted(_grown(facts, loop, method)):
                name = f"{ast.unparse(call.func.value)}{place.removeprefix(root_of(place))}"
                readers = [*read_of_object(facts, method, place, inside)]
                if readers and name not in found:
                    found.add(name)
                    yield KeptByModel(name, any(reader not in in_rounds for reader in readers))


def _methods(facts: Facts, call: ast.Call) -> list[Function]:
    """The methods of a model of the project that a call of a loop enters, with those that they call in turn."""
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    if of is None or not is_place(of) or not any(v.role is Role.MODEL for v in facts.values(of)):
        return []
    level = found = [method for method in facts.targets(call) if object_of(method) is not None]
    for _ in range(_DEEPEST - 1):
        level = [inner for method in level for inner in _own_calls(facts, method) if inner not in found]
        found = [*found, *level]
    return found


def _own_calls(facts: Facts, method: Function) -> Iterator[Function]:
    """The methods that one calls on its own object."""
    for call in facts.own(method).of(ast.Call):
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == object_of(method):
            yield from (inner for inner in facts.targets(call) if object_of(inner) == object_of(method))


def _grown(facts: Facts, loop: LoopFact, method: Function) -> set[str]:
    """The attributes of its object to which a method adds something of the batches, as it writes them, and items."""
    nodes = facts.own(method)
    into: list[ast.expr] = [node.target for node in nodes.of(ast.AugAssign)]
    into += [to for node in nodes.of(ast.Assign) for to in node.targets if isinstance(to, ast.Subscript)]
    into += [filled(call) for call in nodes.of(ast.Call) if is_filling(call)]
    grown = {place for node in into for place in place_of(node)}
    me = object_of(method)
    return {place for place in own_places(facts, loop, method.node) if place in grown and root_of(place) == me != place}


def _inside(facts: Facts, loop: LoopFact, method: Function) -> set[Function]:
    """The functions that the steps of a loop come to, with what the model computes."""
    entered = {each.unit for each in below(facts, loop.node)}
    owner = method.owner
    forwards = owner.lookup("forward") if isinstance(owner, Class) else ()
    return {*entered, *(each.unit for each in forwards if isinstance(each.unit, Function))}
