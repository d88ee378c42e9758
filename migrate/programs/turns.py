"""Loops that train and evaluate by turns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.phases import Phase, Phases
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops


def phases_in_turns(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """One loop that trains and evaluates: what fills up the last batch in training must not count in evaluation."""
    phases = Phases(facts)
    for loop in program.training:
        found = phases.of(loop)
        if found.flag is not None and (found.phase is Phase.MIXED or len(loop.loaders) > 1):
            yield Refusal(
                loop.node,
                "MIG114",
                f"this loop trains or evaluates by turns ({ast.unparse(found.flag.test)}), so its evaluation cannot be "
                "shared out",
                "write the evaluation as a loop of its own",
            )
