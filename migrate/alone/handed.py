"""What the program's own distribution said and the accelerator must know: arguments of its constructor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.numbers import undivided
from migrate.alone.world import WRAPPERS
from migrate.programs.handed import Handed

if TYPE_CHECKING:
    from migrate.alone.samplers import Samplers
    from migrate.alone.scales import Scales
    from migrate.alone.world import World

#: Arguments of DistributedDataParallel that are passed on, with their defaults.
_PASSED_ON = {
    "find_unused_parameters": False,
    "broadcast_buffers": True,
    "gradient_as_bucket_view": False,
    "static_graph": False,
    "bucket_cap_mb": 25,
}


def handed(world: World, samplers: Samplers, scales: Scales) -> Handed:
    """What the modules say."""
    seeds = set(samplers.seeds.values())
    return Handed(_wrapping(world), min(seeds) if seeds else None, _splits(world, scales))


def _wrapping(world: World) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for use in world.facts.calls_anywhere:
        if use.unit.module in world.modules and world.facts.called(use.node) & WRAPPERS:
            for keyword in use.node.keywords:
                if keyword.arg in _PASSED_ON and not _is_default(keyword):
                    found[keyword.arg] = ast.unparse(keyword.value)
    return tuple(found.items())


def _is_default(keyword: ast.keyword) -> bool:
    assert keyword.arg is not None
    return isinstance(keyword.value, ast.Constant) and keyword.value.value == _PASSED_ON[keyword.arg]


def _splits(world: World, scales: Scales) -> bool:
    """Whether a batch size is divided by the number of processes."""
    if any(undivided(world, node) is not None for node in scales.batch_sizes):
        return True
    names = {ast.unparse(n) for n in scales.batch_sizes if isinstance(n, (ast.Name, ast.Attribute))}
    return any(
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, (ast.Div, ast.FloorDiv))
        and ast.unparse(node.target) in names
        and world.is_size(node.value)
        for module in world.modules
        for node in world.facts.tree(module.tree).nodes
    )
