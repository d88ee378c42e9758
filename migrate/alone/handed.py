"""What the program's own distribution said and the accelerator must know: arguments of its constructor."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.alone.numbers import undivided
from migrate.alone.uses import HANDED
from migrate.alone.world import WRAPPERS
from migrate.analysis.entrances import entered_from
from migrate.analysis.units import Function
from migrate.programs.prepare.scripts import is_imported
from migrate.programs.training.handed import Handed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.alone.samplers import Samplers
    from migrate.alone.scales import Scales
    from migrate.alone.world import World
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

#: Arguments of DistributedDataParallel that are passed on, with their defaults.
_PASSED_ON = {
    "find_unused_parameters": False,
    "broadcast_buffers": True,
    "gradient_as_bucket_view": False,
    "static_graph": False,
    "bucket_cap_mb": 25,
}


@dataclass(frozen=True, slots=True)
class Said:
    """What one place says, and the files whose code leads there; None: that of any file may."""

    handed: Handed
    entrances: frozenset[str] | None


def merged(said: Iterable[Said], entrances: frozenset[str]) -> Handed | None:
    """What is handed to programs that are entered from some files; None: these have one process."""
    mine = [each.handed for each in said if each.entrances is None or each.entrances & entrances]
    if not mine:
        return None
    ddp = {key: value for each in mine for key, value in each.ddp}
    seeds = [each.seed for each in mine if each.seed is not None]
    splits, workers = any(each.splits for each in mine), any(each.workers for each in mine)
    return Handed(tuple(ddp.items()), min(seeds, default=None), splits, workers)


def read_by(said: Iterable[Said]) -> dict[str, ast.Module]:
    """What the accelerator's arguments will read, `args.seed`, as if a file did: it must not go for want of a use."""
    texts = {text for each in said for text in (each.handed.seed, *(value for _, value in each.handed.ddp)) if text}
    return {HANDED: ast.parse("\n".join(sorted(texts)))} if texts else {}


def entrances(facts: Facts, unit: Unit) -> frozenset[str] | None:
    """The files whose code leads to a unit; None where not all of its callers are seen, or one of them is imported."""
    above = entered_from(facts, unit)
    if isinstance(unit, Function) and not facts.callers_known(unit.original):
        return None
    return None if any(is_imported(facts, module, above) for module in above) else frozenset(m.file.path for m in above)


def handed(world: World, samplers: Samplers, scales: Scales) -> Iterator[Said]:
    """What the modules say."""
    facts = world.facts
    for use in facts.calls_anywhere:
        if use.unit.module in world.modules and facts.called(use.node) & WRAPPERS:
            if ddp := tuple(_wrapping(use.node)):
                yield Said(Handed(ddp), entrances(facts, use.unit))
    for loader, seed in samplers.seeds.items():
        yield Said(Handed(seed=seed), entrances(facts, facts.unit(loader)))
    for place in _dividing(world, scales.batch_sizes):
        yield Said(Handed(splits=True), entrances(facts, facts.unit(place)))
    for place in _dividing(world, scales.workers):
        yield Said(Handed(workers=True), entrances(facts, facts.unit(place)))


def _wrapping(call: ast.Call) -> Iterator[tuple[str, str]]:
    for keyword in call.keywords:
        if keyword.arg in _PASSED_ON and not _is_default(keyword):
            assert keyword.arg is not None
            yield keyword.arg, ast.unparse(keyword.value)


def _is_default(keyword: ast.keyword) -> bool:
    assert keyword.arg is not None
    return isinstance(keyword.value, ast.Constant) and keyword.value.value == _PASSED_ON[keyword.arg]


def _dividing(world: World, numbers: set[ast.expr]) -> Iterator[ast.AST]:
    """Where one of some numbers is divided by the number of processes."""
    yield from (node for node in numbers if undivided(world, node) is not None)
    names = {ast.unparse(n) for n in numbers if isinstance(n, (ast.Name, ast.Attribute))}
    for module in world.modules:
        for node in world.facts.tree(module.tree).nodes:
            if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Div, ast.FloorDiv)):
                if ast.unparse(node.target) in names and world.is_size(node.value):
                    yield node
