"""Weights of a loss that go by a count of batches: `loss + min(1, step / 1000) * distance`.

N processes take N batches in each step, so such a weight takes N times as many samples to get anywhere. Nothing is
changed: a note says so. A training that ends after a number of steps goes by steps as a whole.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, roles
from migrate.programs.schedule.ends import ends
from migrate.programs.training.loss_parts import LossParts
from migrate.programs.values.counts import Counts, Met
from migrate.programs.values.lengths import Moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion


def weights_by_count(conversion: Conversion) -> Iterator[ast.expr]:
    """The weights that a training loop's losses are multiplied by, and that count the steps of a process."""
    facts, program = conversion.facts, conversion.program
    moments = Moments(facts, program, conversion.placement.stages)
    is_shared = bool(program.training_loaders & conversion.loader_origins)
    if not is_shared or program.handed is not None or ends(facts, conversion.loops, program, moments):
        return
    scaled = set(conversion.scaled)
    counts = Counts(facts, conversion.loops, program, moments)
    told: set[str] = set()
    for loop in program.training:
        for weight in _weights(facts, LossParts(facts, loop, program.model_origins).each()):
            before = len(counts.meetings)
            counts.used(weight)
            met = (each for each in counts.meetings[before:] if each.met is Met.NUMBER)
            if any(scaled.isdisjoint(each.carriers) for each in met) and ast.unparse(weight) not in told:
                told.add(ast.unparse(weight))
                yield weight


def _weights(facts: Facts, parts: list[ast.expr]) -> Iterator[ast.expr]:
    for node in parts:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = [node.left, node.right]
            computed = [bool(roles(facts.values(side)) & FROM_LOADER) for side in sides]
            if sum(computed) == 1:
                yield sides[computed.index(False)]


__all__ = ["weights_by_count"]
