"""Data that only several processes shuffle: `DistributedSampler(data) if gpus > 1 else None` beside `shuffle=False`.

One process goes over them in order, and the converted program does what that does. So it is said what is not done.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import SAMPLERS
from migrate.analysis.syntax import argument_at, is_none, keyword_of
from migrate.programs.loops import Loops
from migrate.report.model import Finding, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.making import Making
    from migrate.alone.world import World

_DEEPEST = 4
_LOADER_SHUFFLE = 2  # DataLoader(dataset, batch_size, shuffle)
_SHUFFLE = 3  # DistributedSampler(dataset, num_replicas, rank, shuffle)
_WHY = "several processes shuffled these data by a DistributedSampler, and one does not: they are not shuffled now"
_WAY_OUT = "to have them shuffled, write shuffle=True"


def lost_orders(world: World, making: Making) -> Iterator[Finding]:
    """A note for each loader of a training that is shuffled on several processes only."""
    trained = _trained(world)
    for loader in making.loaders():
        given = keyword_of(loader, "sampler")
        if loader not in trained or given is None or not all(map(is_none, making.alive(given.value))):
            continue
        shuffle = argument_at(loader, _LOADER_SHUFFLE, "shuffle")
        if shuffle is not None and not (isinstance(shuffle, ast.Constant) and not shuffle.value):
            continue
        if any(_shuffles(world, each) for each in _either(world, given.value, _DEEPEST)):
            file = world.facts.file(loader)
            line, column, end = file.place(loader)
            yield Finding("MIG113", file.path, line, column, end, _WHY, _WAY_OUT, Kind.NOTE)


def _trained(world: World) -> set[ast.AST]:
    """The calls that make loaders over which a training loop runs."""
    facts = world.facts
    return {
        facts.source(origin)
        for loop in Loops(facts).training
        if isinstance(loop.node, ast.For)
        for inner in ast.walk(loop.node.iter)
        if isinstance(inner, ast.expr)
        for origin in facts.loaders(facts.values(inner))
    }


def _either(world: World, node: ast.expr, depth: int) -> Iterator[ast.expr]:
    """What a value may come from, on one process and on several."""
    if isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, (ast.Name, ast.Attribute)):
        parts = list(world.sources.given(node).expressions)
    else:
        yield node
        return
    for part in parts if depth else ():
        yield from _either(world, part, depth - 1)


def _shuffles(world: World, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not world.facts.called(node) & SAMPLERS:
        return False
    shuffle = argument_at(node, _SHUFFLE, "shuffle")
    return not (isinstance(shuffle, ast.Constant) and not shuffle.value)
