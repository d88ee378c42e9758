"""Meters that keep a list of what they are given: of the means of batches, it is made one number by number.

    class Losses:
        def __init__(self):
            self.values = []                     for x, y in loader:
        def update(self, value):                     losses.update(loss.item())
            self.values.append(value)            losses.values[:] = accelerator.reduce(losses.values, reduction="mean")

Where the meter, or anybody, adds the numbers up, that would be N times too small: it stays one process's own.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from migrate.analysis.syntax import targets_of, walk
from migrate.analysis.units import Function
from migrate.programs.shares.summed import is_summed
from migrate.programs.values.lists import is_met
from migrate.programs.values.readers import Loaded
from migrate.programs.values.scalars import Scalar, Scalars
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.shares.meters import Meter


def lists_of_means(facts: Facts, loop: LoopFact, meter: Meter, calls: Collection[ast.Call]) -> Iterator[str]:
    """The attributes of a meter that some calls fill with the means of batches, of all processes in the same steps."""
    scalars = Scalars(facts, loop)
    for name in sorted(meter.sums):
        put = [each for call in calls for each in _put(facts, call, name)]
        if put and all(_is_mean(facts, loop, scalars, each) for each in put):
            if _is_list(meter, name) and not is_summed(facts, _read(facts, name)):
                yield name


def _read(facts: Facts, name: str) -> Iterator[ast.expr]:
    """Where an attribute of this name is read; not where a method is called, `sums.values()`."""
    for node in facts.once(Loaded).attributes.get(name, ()):
        above = facts.tree(node).parents[node]
        if not (isinstance(above, ast.Call) and above.func is node):
            yield node


class _Put(NamedTuple):
    """What a call has a meter put into a list."""

    value: ast.expr | None  # what the meter is given; None: something else is put there
    is_asked: bool  # for its number: `value.item()`


def _put(facts: Facts, call: ast.Call, name: str) -> Iterator[_Put]:
    for method in facts.targets(call):
        given = received(call, method)
        for node in facts.own(method):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr), attr="append"), args=[value]):
                    if attr == name:
                        is_always = facts.tree(node).statement(node) in method.body
                        yield _Put(given.get(_parameter(value)) if is_always else None, not isinstance(value, ast.Name))


def _is_mean(facts: Facts, loop: LoopFact, scalars: Scalars, put: _Put) -> bool:
    """Whether the number that is put there is the mean of a batch, in a step of all processes."""
    if put.value is None or not scalars.is_mean(put.value) or not is_met(facts, loop, put.value):
        return False
    kind = scalars.kind(put.value)
    return kind is Scalar.FLOAT or (put.is_asked and kind is Scalar.TENSOR)


def _parameter(value: ast.expr) -> str:
    """What a method puts somewhere as it is, or the number in it: `value`, `value.item()`; empty: something else."""
    match value:
        case ast.Name(id=name) | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="item"), args=[]):
            return name
    return ""


def _is_list(meter: Meter, name: str) -> bool:
    """Whether an attribute is an empty list wherever a method gives it a value, and one does."""
    methods = (value.unit for values in meter.cls.names.values() for value in values)
    nodes = (node for unit in methods if isinstance(unit, Function) for node in walk(unit.node))
    given = [
        node.value
        for node in nodes
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and any(isinstance(to, ast.Attribute) and to.attr == name for to in targets_of(node))
    ]
    return bool(given) and all(isinstance(value, ast.List) and not value.elts for value in given)
