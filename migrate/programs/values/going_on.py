"""Numbers, lists and meters that go on growing in another training loop: they are joined behind the last of these.

    total = 0
    for batch in first: ...   # total += loss.item()
    for batch in second: ...  # total += loss.item()

Joined behind each of them, what the first has left would count once for each process. So it would where a training loop
stands in another one, as for the steps of a critic: what both add up is joined by the outer one.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.syntax import root_name, walk
from migrate.programs.values.accumulators import statements_after
from migrate.programs.values.divided import OF_LISTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.shares.joins import Join
    from migrate.programs.values.accumulators import Accumulator


def beside(training: Collection[LoopFact], loop: LoopFact) -> list[LoopFact]:
    """The other training loops of the same function that run over loaders."""
    return [each for each in training if each.unit is loop.unit and each.loaders and each.node is not loop.node]


def joined_last(
    facts: Facts, loop: LoopFact, others: Collection[LoopFact], added: Callable[[LoopFact], Collection[Accumulator]]
) -> Iterator[Accumulator]:
    """What a loop adds up, joined behind it only where none of `others` takes it up first or stands around it."""
    further = [accumulator for each in others for accumulator in added(each)]
    wider = [accumulator for each in _around(facts, loop, others) for accumulator in added(each)]
    for each in added(loop):
        if any((o.name, o.after) == (each.name, each.after) for o in wider):
            yield replace(each, joined=None, read_inside=False)
            continue
        alike = [o.after for o in further if o.name == each.name and o.joined is each.joined]
        goes_on = each.joined is not None and _goes_on(facts, each.after, each.name, alike)
        yield replace(each, joined=None) if goes_on else each
    yield from (replace(each, joined=None) for each in wider if each.joined in OF_LISTS)


def meters_last(
    facts: Facts, loop: LoopFact, others: Collection[LoopFact], fed: Callable[[LoopFact], Collection[Join]]
) -> Iterator[Join]:
    """The meters that a loop feeds; of one that another loop goes on to feed nothing is joined behind this one."""
    further = [join for each in others for join in fed(each)]
    wider = {(join.target, join.after) for each in _around(facts, loop, others) for join in fed(each)}
    for each in fed(loop):
        alike = [o.after for o in further if (o.target, o.sums) == (each.target, each.sums)]
        goes_on = (each.target, each.after) in wider or _goes_on(facts, each.after, each.target, alike)
        yield replace(each, sums=(), lists=(), derived=()) if goes_on else each


def _around(facts: Facts, loop: LoopFact, others: Collection[LoopFact]) -> list[LoopFact]:
    """Those of some training loops that stand around one of them."""
    around = set(facts.tree(loop.node).loops(loop.node))
    return [each for each in others if each.node in around]


def _goes_on(facts: Facts, after: ast.stmt, name: str, others: Collection[ast.stmt]) -> bool:
    """Whether another loop is the first to ask for a number or an object."""
    root = root_name(ast.parse(name, mode="eval").body)
    for statement in statements_after(facts, after):
        if any(statement is other for other in others):
            return True
        if any(isinstance(node, ast.Name) and node.id == root for node in walk(statement)):
            return False
    return False
