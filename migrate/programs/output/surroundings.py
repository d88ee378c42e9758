"""The code around a program: it comes to where the accelerator is made, has none itself, and runs on every process.

`main()` that makes folders, and then the trainer whose `__init__` makes the accelerator; the top level of files that
are imported; what models and data sets say while they are made. All processes write what is written there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import is_main_guard
from migrate.analysis.units import Function, Module
from migrate.programs.output.folders import may_be_there
from migrate.programs.output.muted import is_muted
from migrate.programs.reach.callees import leading
from migrate.programs.reach.outsiders import units_from
from migrate.programs.values.logs import tells_progress

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.programs.output.voice import Voice


@dataclass(frozen=True, slots=True)
class Outside:
    """What a unit around a program writes, by statement, and the folders that it makes if they are not there."""

    unit: Unit
    written: list[ast.stmt]
    folders: list[ast.Call]
    only_prints: bool

    def without(self, covered: Container[ast.AST]) -> Outside:
        """The same without the statements that are taken care of."""
        return replace(self, written=[statement for statement in self.written if statement not in covered])


def surroundings(conversion: Conversion, voice: Voice) -> Iterator[Outside]:
    """The units around a program that write something, or call a function that leaves it to its calls who does."""
    facts = conversion.facts
    above = _above(conversion)
    early = set(_around(conversion, above, []))
    silent = is_muted(conversion)
    around = _around(conversion, above, _made(conversion))
    for unit in around:
        if not facts.is_editable(unit) or _is_guarded(conversion, voice, unit):
            continue
        folders = may_be_there(facts, unit)
        calls = _calls(conversion, unit, whole=unit in above)
        heard = [
            call
            for call in calls
            if voice.is_heard(call)
            or is_command(facts, call)
            or (unit in early and tells_progress(facts, call))
            or any(target not in around and voice.is_guarded_outside(target) for target in facts.targets(call))
        ]
        said = [call for call in heard if call not in folders and not voice.is_asked(call)]
        files = [call for call in said if output.PRINT not in facts.called(call)]
        written = {facts.tree(call).statement(call): None for call in (files if silent else said)}
        if folders or written:
            yield Outside(unit, list(written), folders, only_prints=not files)


def is_command(facts: Facts, call: ast.Call) -> bool:
    """Whether a call has the system run another program for what that does: nobody asks what it prints."""
    return bool(facts.called(call) & output.COMMANDS) and isinstance(facts.tree(call).parents[call], ast.Expr)


def unnamed_speakers(conversion: Conversion, voice: Voice) -> tuple[str, ...]:
    """The files that were not named, and of which every process prints or writes something."""
    facts, silent = conversion.facts, is_muted(conversion)
    entered = [
        *conversion.units,
        *conversion.program.outsiders,
        *_around(conversion, _above(conversion), _made(conversion)),
    ]
    found: set[str] = set()
    for unit in entered:
        is_of_one = isinstance(unit, Function) and voice.is_of_ones_object(unit)
        if facts.is_editable(unit) or is_of_one or _is_guarded(conversion, voice, unit):
            continue
        said = (call for call in _calls(conversion, unit, whole=False) if voice.is_heard(call))
        if any(not voice.is_asked(call) and not (silent and output.PRINT in facts.called(call)) for call in said):
            found.add((unit if isinstance(unit, Module) else unit.module).path)
    return tuple(sorted(found))


def _is_guarded(conversion: Conversion, voice: Voice, unit: Unit) -> bool:
    """Whether the main process comes to a function alone, or first: what calls it is changed, and sees to that."""
    if not isinstance(unit, Function) or not voice.is_written_elsewhere(unit):
        return False
    callers = {call.caller.original for call in conversion.facts.callers(unit)}
    in_turns = {caller for caller in callers if isinstance(caller, Function) and caller.owner in voice.in_turns}
    return bool(callers) and callers - in_turns <= {*conversion.units, *conversion.access.around}


def _above(conversion: Conversion) -> set[Unit]:
    """The units that come to where the accelerator is made."""
    facts, start = conversion.facts, conversion.program.start
    return leading(facts, [call.caller for call in facts.callers(start)] if isinstance(start, Function) else [])


def _made(conversion: Conversion) -> Iterator[Unit]:
    """What the program calls: models and data sets are made, mostly below the accelerator."""
    return (target.original for use in conversion.uses for target in conversion.facts.targets(use.node))


def _around(conversion: Conversion, above: set[Unit], besides: Iterable[Unit]) -> list[Unit]:
    """These units, the top level of the program's files, and what they call, as far as that is left alone."""
    others = units_from(conversion.facts, *conversion.program.others)  # which speak for themselves
    seen = _entered(conversion, above, besides, {*conversion.units, *others})
    left = seen - conversion.access.around.keys() - conversion.program.outsiders.keys()
    return [unit for unit in conversion.facts.units if unit in left]


def run_above(conversion: Conversion) -> set[Unit]:
    """What runs on the way to the accelerator, and while the program's files are loaded, whoever else runs it."""
    return _entered(conversion, _above(conversion), (), conversion.units)


def _entered(conversion: Conversion, above: set[Unit], besides: Iterable[Unit], without: Container[Unit]) -> set[Unit]:
    seen: set[Unit] = set()
    waiting: list[Unit] = [*above, *conversion.modules, *besides]
    while waiting:
        unit = waiting.pop()
        if unit in seen or unit in without:
            continue
        seen.add(unit)
        for call in _calls(conversion, unit, whole=unit in above):
            waiting += [target.original for target in conversion.facts.targets(call)]
    return seen


def _calls(conversion: Conversion, unit: Unit, *, whole: bool) -> Sequence[ast.Call]:
    """The calls of a unit; of a file that is only imported, those outside of `if __name__ == "__main__":`."""
    facts = conversion.facts
    calls = facts.own(unit).of(ast.Call)
    if whole or not isinstance(unit, Module):
        return calls
    return [call for call in calls if not any(map(is_main_guard, facts.tree(call).up(call)))]
