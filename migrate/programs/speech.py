"""Every statement of a program that writes something, sorted by what one process speaking for all makes of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, blocks
from migrate.analysis.units import Function, Module
from migrate.programs.guards import is_asked, keeps
from migrate.programs.voice import Voice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.programs.conversion import Conversion


@dataclass(slots=True)
class Speech:
    """The output of one program."""

    prints: list[ast.Call] = field(default_factory=list)
    early: list[ast.stmt] = field(default_factory=list)  # prints before the accelerator exists
    saves: list[ast.Call] = field(default_factory=list)  # torch.save(object, path) by itself
    guarded: list[list[ast.stmt]] = field(default_factory=list)  # neighbours that do nothing but write
    mixed: list[ast.stmt] = field(default_factory=list)  # write, and run what all processes must enter
    opened: list[ast.Call] = field(default_factory=list)  # files that stay open for writing: log = open(path, "w")
    unreached: list[Function] = field(default_factory=list)  # functions that write out of the accelerator's reach
    bars: list[ast.Call] = field(default_factory=list)
    logs: list[ast.Call] = field(default_factory=list)  # through the standard library's logging

    @property
    def edits(self) -> int:
        """How many places need the accelerator."""
        return len(self.prints) + len(self.saves) + len(self.guarded)


def speech(conversion: Conversion) -> Speech:
    """What the units of a program write. Functions that only write are left; their calls are among the guarded."""
    said = Speech()
    voice = Voice(conversion)
    for unit in conversion.ordered_units:
        if isinstance(unit, Module):
            _listen(conversion, voice, said, unit.tree.body)
        else:
            _listen_inside(conversion, voice, said, unit)
    for unit in conversion.program.outsiders:
        if voice.speaks(unit) and not voice.is_guarded_outside(unit):
            said.unreached.append(unit)
    said.logs = [use.node for use in conversion.uses if _logs(conversion, use.node)]
    said.bars = [bar for bar in voice.bars() if conversion.access.can_reach(bar)]
    return said


_LEVELS = frozenset("debug info warning error critical exception log".split())


def _logs(conversion: Conversion, node: ast.Call) -> bool:
    """`logging.info(...)`, or the same on what logging.getLogger gave."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _LEVELS:
        return False
    if any(name.startswith("logging.") for name in conversion.facts.called(node)):
        return True
    return any(
        isinstance(value.origin, ast.Call) and "logging.getLogger" in conversion.facts.called(value.origin)
        for value in conversion.facts.receiver(node)
    )


def _listen_inside(conversion: Conversion, voice: Voice, said: Speech, unit: Function) -> None:
    """Look at a function's own statements: it has the accelerator, or does more than speak and can be given it."""
    if isinstance(unit.node, ast.Lambda) or voice.is_guarded_outside(unit):
        return
    access = conversion.access
    if access.has(unit):
        _listen(conversion, voice, said, unit.body)
    elif voice.speaks(unit):
        before, edits = dict(access.parameters), said.edits
        if not access.can_reach(unit.body[0]):
            said.unreached.append(unit)
            return
        _listen(conversion, voice, said, unit.body)
        if said.edits == edits:  # only what it calls speaks: it needs no accelerator
            access.parameters = before


def _listen(conversion: Conversion, voice: Voice, said: Speech, body: Iterable[ast.stmt]) -> None:
    """Sort the statements of a block, and of the blocks in it; neighbours that only write stay together."""
    run: list[ast.stmt] = []
    for statement in body:
        writes = not is_asked(statement) and (voice.only_outputs(statement) or voice.is_save(statement))
        if writes and not voice.is_collective(statement) and _runs_after(conversion, statement):
            run.append(statement)
            continue
        _close(voice, said, run)
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(statement, ast.If) and keeps(conversion, statement):
            _listen(conversion, voice, said, statement.orelse)
            continue
        if writes and voice.is_collective(statement):
            said.mixed.append(statement)
        elif voice.is_print(statement):
            _hear(conversion, said, statement)
        elif isinstance(statement, ast.Assign) and voice.opens_for_writing(statement.value):
            said.opened.append(statement.value)  # type: ignore[arg-type]
        for inner in blocks(statement):
            _listen(conversion, voice, said, inner)
    _close(voice, said, run)


def _hear(conversion: Conversion, said: Speech, statement: ast.stmt) -> None:
    if _runs_after(conversion, statement):
        said.prints.append(statement.value)  # type: ignore[attr-defined]
    else:
        said.early.append(statement)


def _close(voice: Voice, said: Speech, run: list[ast.stmt]) -> None:
    if run and all(voice.is_save(statement) for statement in run):
        said.saves += [statement.value for statement in run]  # type: ignore[attr-defined]
    elif run:
        said.guarded.append(list(run))
    run.clear()


def _runs_after(conversion: Conversion, statement: ast.stmt) -> bool:
    """Whether the accelerator exists when the statement runs."""
    if conversion.facts.unit(statement) is not conversion.program.start:
        return True
    spot = conversion.placement.accelerator
    return statement.lineno > spot.statement.lineno or (spot.where == "before" and statement is spot.statement)
