"""Loops that train and evaluate by turns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.program import Program, Refusal
from migrate.programs.training.phases import Phase, Phases
from migrate.programs.training.turning import misread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops


def phases_in_turns(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """One loop that trains and evaluates: what fills up the last batch in training must not count in evaluation."""
    yield from _misread(facts, program)
    yield from _unjoined(loops, program)
    phases = Phases(facts)
    by_turns = _by_turns(program)
    for loop in program.training:
        if loop in by_turns:
            continue
        found = phases.of(loop)
        if found.flag is not None and (found.phase is Phase.MIXED or len(loop.loaders) > 1):
            yield Refusal(
                loop.node,
                "MIG114",
                f"this loop trains or evaluates by turns ({ast.unparse(found.flag.test)}), so its evaluation cannot be "
                "shared out",
                "write the evaluation as a loop of its own",
            )


def _misread(facts: Facts, program: Program) -> Iterator[Refusal]:
    """Loaders taken out of the dictionary in a way that does not tell which they are, once one of them is prepared."""
    last = max((s.lineno for named in program.optimizers for s in named.statements), default=0)
    for turning in program.turnings:
        if (other := misread(facts, turning, last)) is not None:
            yield Refusal(
                other,
                "MIG114",
                f"this takes loaders out of a dictionary of which only {turning.key!r} would be prepared",
                "take them out by their names, in a loop of its own for each",
            )


def _unjoined(loops: Loops, program: Program) -> Iterator[Refusal]:
    """What such a loop adds up in other ways than anew for each phase cannot be joined where it has trained."""
    for loop in _by_turns(program):
        late = [
            a.name
            for a in loops.accumulated(loop)
            if a.joined and (_is_late(a.after, loop.node) or a.is_number is None)
        ]
        names = late or [join.target for join in loops.joined(loop) if _is_late(join.after, loop.node)]
        if names:
            yield Refusal(
                loop.node,
                "MIG114",
                f"{names[0]} is added up where this loop trains and where it evaluates, and cannot be joined for "
                "one of them",
                "write the evaluation as a loop of its own",
            )


def _is_late(after: ast.stmt, loop: ast.stmt) -> bool:
    """Whether shares are joined after more than the loop, and a context around it."""
    return after is not loop and not isinstance(after, (ast.With, ast.AsyncWith))


def _by_turns(program: Program) -> list[LoopFact]:
    return [*(found.loop for found in program.turnings), *(found.loop for found in program.flagged)]
