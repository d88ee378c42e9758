"""Files that the main process alone fetches or unpacks: all others wait for it below, whatever reads them there."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from migrate.analysis.syntax import DEFINITIONS, is_main_guard
from migrate.analysis.units import Function
from migrate.programs.output.heard import speech
from migrate.programs.output.voice import Voice
from migrate.programs.values.bringing import brings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion

_DEEPEST = 4


def below_what_is_brought(conversion: Conversion) -> list[ast.stmt]:
    """The statements that follow what brings files by a statement of its own, where all processes come to them."""
    facts = conversion.facts
    bringing = [use for use in facts.calls if brings(facts, use.node)]
    if not bringing:
        return []
    speech(conversion)  # which functions are handed the accelerator is settled there
    voice = Voice(conversion)
    places = (place for use in bringing for place in _below(voice, use.node, use.unit, _DEEPEST))
    return list(dict.fromkeys(places))


def _below(voice: Voice, node: ast.AST, unit: Unit, depth: int) -> Iterator[ast.stmt]:
    """What follows the outermost statement around a node in its function; in those that call it, where nothing does."""
    conversion = voice.conversion
    facts, tree = conversion.facts, conversion.facts.tree(node)
    held = tree.statement(node)
    is_here = conversion.access.has(unit) and conversion.has_accelerator_at(held)
    if is_here and not voice.is_written_elsewhere(unit):
        for above in tree.up(held):
            if isinstance(above, DEFINITIONS) or is_main_guard(above):
                break
            held = above if isinstance(above, ast.stmt) else held
        if conversion.loops.trains(held):
            return
        block = tree.block(held)
        below = itertools.dropwhile(voice.only_outputs, block[block.index(held) + 1 :])
        if (place := next(below, None)) is not None:
            yield place
            return
    if isinstance(unit, Function) and depth and unit.owner not in voice.in_turns:
        for call in facts.callers(unit):
            yield from _below(voice, call.node, call.caller, depth - 1)
