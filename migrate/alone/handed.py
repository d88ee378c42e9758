"""What the program's own distribution said and the accelerator must know: arguments of its constructor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.numbers import undivided
from migrate.alone.world import WRAPPERS
from migrate.programs.handed import Handed

if TYPE_CHECKING:
    from migrate.alone.samplers import Samplers
    from migrate.alone.world import World

#: Arguments of DistributedDataParallel that are passed on, with their defaults.
_PASSED_ON = {
    "find_unused_parameters": False,
    "broadcast_buffers": True,
    "gradient_as_bucket_view": False,
    "static_graph": False,
    "bucket_cap_mb": 25,
}
_BATCHES = ("batch_size", 1)


def handed(world: World, samplers: Samplers) -> Handed:
    """What the modules say."""
    seeds = set(samplers.seeds.values())
    return Handed(_wrapping(world), min(seeds) if seeds else None, _splits(world))


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


def _splits(world: World) -> bool:
    """Whether a batch size is divided by the number of processes."""
    return any(_is_divided(world, size, 6) for size in _sizes(world))


def _sizes(world: World) -> list[ast.expr]:
    from migrate.alone.samplers import LOADERS

    found = []
    for use in world.facts.calls_anywhere:
        if use.unit.module in world.modules and world.facts.called(use.node) & LOADERS:
            name, position = _BATCHES
            given = next((k.value for k in use.node.keywords if k.arg == name), None)
            if given is None and len(use.node.args) > position:
                given = use.node.args[position]
            found += [given] if given is not None else []
    return found


def _is_divided(world: World, node: ast.expr, depth: int) -> bool:
    if undivided(world, node) is not None:
        return True
    if depth == 0:
        return False
    if isinstance(node, ast.IfExp):
        return _is_divided(world, node.body, depth) or _is_divided(world, node.orelse, depth)
    given = list(world.sources.given(node).expressions)
    if isinstance(node, ast.Attribute):
        given += [v for target, v in world.assigned_attributes() if target.attr == node.attr and v is not None]
    return any(_is_divided(world, part, depth - 1) for part in given if part is not node)
