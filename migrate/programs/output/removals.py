"""Files that all processes read, and that the main process alone then removes, renames or writes anew.

`state = torch.load(path)` above `os.remove(path)`: the main process must not be at the second before the last of the
others has done the first. Training between the two keeps them together anyway.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.programs.output.caches import caches
from migrate.programs.output.filled import looked_into, parts_of
from migrate.programs.output.rereads import is_entered_by_one, read_path, written_paths
from migrate.programs.output.voice import Voice
from migrate.programs.reach.callees import uses_reached
from migrate.programs.values.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion

    Place = tuple[ast.Call, Unit]

TREES = frozenset({"shutil.rmtree"})


def removals(conversion: Conversion) -> list[ast.stmt]:
    """The statements before which all processes wait, for what they have read goes away in them."""
    takers: dict[str, list[Place]] = {}
    for path, taker in _takers(conversion):
        takers.setdefault(path, []).append(taker)
    found: dict[ast.stmt, None] = {}
    for path, read in _reads(conversion) if takers else ():
        for taker in takers.get(path, ()):
            if (place := between(conversion, read, taker)) is not None:
                found[place] = None
    found.update((place, None) for place in _whole_folders(conversion))
    return list(found)


def _whole_folders(conversion: Conversion) -> Iterator[ast.stmt]:
    """The statements that take a folder away into which something above them has looked."""
    facts, voice = conversion.facts, Voice(conversion)
    takers = [use for use in facts.calls if use.node.args and facts.called(use.node) & TREES]
    for use in conversion.speaking_uses if takers else ():
        if voice.is_of_one(facts.tree(use.node).statement(use.node)):
            continue
        for taker in takers:
            gone = parts_of(facts, taker.node.args[0])
            if gone and any(folder[: len(gone)] == gone for folder in looked_into(facts, use.node)):
                if (place := between(conversion, (use.node, use.unit), (taker.node, taker.unit))) is not None:
                    yield place


def _takers(conversion: Conversion) -> Iterator[tuple[str, Place]]:
    """What removes, renames or writes files, by the text of the path."""
    for path, writes in written_paths(conversion):
        yield from ((path, write) for write in writes)
    outputs = conversion.facts.once(Outputs)
    for use in conversion.facts.calls:
        if use.node.args and conversion.facts.called(use.node) & output.REMOVES:
            yield ast.unparse(use.node.args[0]), (use.node, use.unit)
        elif isinstance(use.node.func, ast.Attribute):
            if use.node.func.attr == output.REMOVES_ITSELF or outputs.moves(use.node):
                yield ast.unparse(use.node.func.value), (use.node, use.unit)


def _reads(conversion: Conversion) -> Iterator[tuple[str, Place]]:
    """What all processes read, by the text of the path."""
    voice, kept = Voice(conversion), conversion.once(caches).inside
    for use in uses_reached(conversion.facts, conversion.speaking_uses):
        path = read_path(conversion, use.node)
        if path is None or use.node in kept or not conversion.access.has(use.unit):
            continue
        is_of_one = voice.is_of_one(conversion.facts.tree(use.node).statement(use.node))
        if not is_of_one and not is_entered_by_one(voice, use.unit):
            yield ast.unparse(path), (use.node, use.unit)


def between(conversion: Conversion, read: Place, taker: Place) -> ast.stmt | None:
    """The statement that takes a file away, in the block that has read it above; None where training lies between."""
    (reading, unit), (taking, other) = read, taker
    if unit is not other:
        return None
    tree = conversion.facts.tree(reading)
    both = [tree.statement(reading), tree.statement(taking)]
    block = tree.common_block(both)
    first, last = (block.index(held) for one in both if (held := tree.in_block(one, block)) is not None)
    if first >= last or any(map(conversion.loops.trains, block[first : last + 1])):
        return None
    return block[last] if conversion.has_accelerator_at(block[last]) else None
