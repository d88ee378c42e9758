"""Optimizers that a function makes anew each time, with Accelerate, which keeps all that it was ever given.

Its clipping takes the scale of fp16 off the gradients once for each of them: those of one model, several times.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.training import CLIPPING
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def unscaled_for_each(facts: Facts, program: Program, units: Collection[Unit], package: str) -> Iterator[Refusal]:
    """Where gradients are clipped in a program that Accelerate would know several optimizers of."""
    anew = next((named for named in program.optimizers if named.unit is not None), None)
    if package != "accelerate" or anew is None:
        return
    clips = (node for unit in units for node in facts.own(unit) if isinstance(node, ast.Call))
    for call in sorted((node for node in clips if facts.called(node) & CLIPPING.keys()), key=lambda n: n.lineno)[:1]:
        yield Refusal(
            call,
            "MIG109",
            f"gradients are clipped here, and {anew.target} is made anew each time that its function is called: with "
            "fp16 Accelerate would take the scale off the gradients once for each that was made",
            f"make {anew.target} once, beside the model, and hand it over, or use --target runtime",
        )
