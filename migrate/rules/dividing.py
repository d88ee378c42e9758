"""What is said of the sums of a training by what divides them: the batches of a process, or all samples of the data.

A part of the rule for metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.shares.filled_rounds import counting_twice
from migrate.programs.shares.undivided import is_mean_already, undivided
from migrate.programs.values.divided import Joined
from migrate.rules.joining import of_shares

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.programs.conversion import Conversion
    from migrate.programs.loops import LoopFact
    from migrate.programs.values.accumulators import Accumulator
    from migrate.rules.draft import Draft

_FILLED = "where the samples do not go evenly into the batches of N processes, the last ones are filled up"


def say_divided(conversion: Conversion, draft: Draft, loop: LoopFact, found: Collection[Accumulator]) -> None:
    """Say which numbers are N times too small in some place, and which may count samples twice.

    Nothing is to say where batches are split: each process sees as many as one alone, and its share of the last.
    """
    if conversion.program.handed is not None and conversion.program.handed.splits:
        return
    summed = (each for each in found if not is_mean_already(conversion.facts, loop, each.name))
    for accumulator in summed:
        if accumulator.joined is Joined.MEAN and of_shares(conversion, accumulator).joined is Joined.MEAN:
            for read in undivided(conversion.facts, loop, accumulator):
                what = f"{accumulator.name} is joined as a mean, as what one process counts divides it elsewhere"
                way_out = "divide by a number of samples in both places: samples += len(y), or that of the data set"
                draft.note(read, f"{what}: here it is N times too small", way_out)
    if names := ", ".join(counting_twice(conversion.facts, loop, found)):
        what = f"{_FILLED}: what len() of the data set divides may count samples twice ({names})"
        draft.note(
            loop.node, what, "divide by what the loop counts of them, seen += len(y), to have a mean in any case"
        )
