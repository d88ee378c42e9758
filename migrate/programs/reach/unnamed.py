"""The files that a program reaches and that were not named: they are read, never edited, and have to be named as well.

All of them are told at once, as the command that names them: `migrate main.py engine.py`.
"""

from __future__ import annotations

import ast
import shlex
from typing import TYPE_CHECKING

from migrate.analysis.known.training import CLIPPING
from migrate.analysis.units import Function, Unit, module_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops


def files(facts: Facts, loops: Loops, training: Iterable[LoopFact], home: Unit | None, *more: Unit) -> tuple[str, ...]:
    """The files of a program, in the order of its calls: those of its loops, of its home, and of what lies between.

    `more` are other units that need the accelerator.
    """
    starts: list[Unit] = [*more]
    for loop in training:
        starts += [loop.unit, *(facts.unit(call) for call in loop.backwards)]
        starts += facts.once(_Clipping)[loop.unit]
        starts += [other.unit for other in loops.evaluation if other.loaders & loop.loaders]
    between = _up_to(facts, starts, home)
    modules = {module_of(unit): None for unit in ([home] if home is not None else [])}
    callers = [unit for unit in reversed(between) if unit not in starts]
    modules.update((module_of(unit), None) for unit in (*callers, *starts))
    return tuple(module.path for module in modules)


def unnamed(facts: Facts, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of the files that were not named."""
    named = {module.path for module in facts.editable}
    return tuple(path for path in paths if path not in named)


def command(paths: Iterable[str]) -> str:
    """What to type to name the files, as a shell takes it."""
    return shlex.join(["migrate", *paths])


def way_out(paths: Iterable[str], missing: tuple[str, ...]) -> str:
    """How to go on where files were not named."""
    named = [path for path in paths if path not in missing]
    return f"name {'it' if len(missing) == 1 else 'them'} too: {command([*named, *missing])}"


def listed(missing: tuple[str, ...]) -> str:
    """`a.py, which was not named`, `a.py and b.py, which were not named`."""
    *first, last = missing
    return f"{', '.join(first)} and {last}, which were not named" if first else f"{last}, which was not named"


def _up_to(facts: Facts, starts: list[Unit], home: Unit | None) -> list[Unit]:
    """The units and all that lead to them, without what calls the home."""
    found: dict[Unit, None] = {}
    waiting = list(reversed(starts))
    while waiting:
        unit = waiting.pop()
        if unit in found:
            continue
        found[unit] = None
        if isinstance(unit, Function) and unit is not home:
            waiting += [call.caller for call in reversed(facts.callers(unit))]
    return list(found)


class _Clipping(dict[Unit, list[Unit]]):
    """The functions that a loop's function enters, and that clip: that is the accelerator's to do."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, unit: Unit) -> list[Unit]:
        found: list[Unit] = []
        waiting, seen = [unit], {unit}
        while waiting:
            current = waiting.pop()
            for node in self._facts.own(current).of(ast.Call):
                if self._facts.called(node) & CLIPPING.keys():
                    found.append(current)
                entered = [target for target in self._facts.targets(node) if target not in seen]
                seen.update(entered)
                waiting += entered
        self[unit] = found
        return found
