"""Learning rates of one process and of two, after as many samples."""

import pytest

from migrate.verify.compare.schedule import same_schedule
from migrate.verify.model import Outcome
from migrate.verify.records import Batch, Record, Step
from migrate.verify.run import Run


def record(rates, rank, processes, per_batch):
    """A process that takes some steps in each of its batches, with a rate that changes with the batches."""
    found = Record("/copy", trained=[0])
    for number, rate in enumerate(rates):
        first = 4 * (number * processes + rank)
        found.batches.append(Batch(0, number, 4, (), tuple(range(first, first + 4))))
        for _ in range(per_batch):
            count = len(found.steps) + 1
            found.steps.append(
                Step(0, "SGD", count, None, 0, 1.0, (rate,), 0.0, (), (), False, "train.py:9", 0, number)
            )
    return found


def run(rates, processes, per_batch):
    return Run("", tuple(record(rates, rank, processes, per_batch) for rank in range(processes)), {}, "", 0.0)


@pytest.mark.parametrize("per_batch", [1, 3])
@pytest.mark.parametrize(
    ("rates", "outcome"),
    [
        ((1.0, 0.8, 0.6), Outcome.PASS),  # goes by the batches of both
        ((1.0, 0.9, 0.8), Outcome.FAIL),  # each counts its own
    ],
)
def test_a_rate_goes_by_the_samples_that_have_been_seen(per_batch, rates, outcome):
    alone = run((1.0, 0.9, 0.8, 0.7, 0.6, 0.5), 1, per_batch)
    launched = run(rates, 2, per_batch)

    verdict = same_schedule(alone, launched, alone, launched)

    assert verdict.outcome is outcome
