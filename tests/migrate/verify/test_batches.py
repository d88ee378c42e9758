"""Batches of one process and of several: the same samples, others, or such as may differ."""

import math
from dataclasses import replace

import pytest

from migrate.verify.compare.batches import Sharing, same_batches, samples
from migrate.verify.compare.one import same_on_one
from migrate.verify.model import Outcome
from migrate.verify.records import Batch, Loss, Record, Step
from migrate.verify.run import Run


def record(sums, indices, **more):
    found = Record("/copy", trained=[0])
    found.batches.append(Batch(0, 0, len(sums), sums, indices, **{"width": 8, **more}))
    return found


ALONE = ((11, 12, 13, 14), (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("parts", "more", "sharing", "is_drawn"),
    [
        ((((11, 12), (0, 1)), ((13, 14), (2, 3))), {}, Sharing.SHARED, False),
        ((ALONE, ALONE), {}, Sharing.WHOLE, False),
        ((((11, 12), (0, 1)), ((15, 14), (2, 3))), {}, Sharing.OTHER, False),  # other data under the same index
        ((((11, 12), (0, 1)), ((15, 14), (2, 3))), {"draws": True}, Sharing.SHARED, True),
        ((((11, 12), (0, 1)), ((15, 14), (2, 3))), {"width": 6}, Sharing.SHARED, True),  # filled up to a shorter one
        ((((11, 12), (0, 1)), ((11, 12), (0, 1))), {}, Sharing.OTHER, False),
    ],
)
def test_samples_are_told_by_what_is_in_them(parts, more, sharing, is_drawn):
    found = samples(record(*ALONE), tuple(record(*part, **more) for part in parts))
    assert (found.sharing, found.is_drawn) == (sharing, is_drawn)


# --- what is no number ----------------------------------------------------------------------------------------------


def trained(*gradients, value=1.0):
    """A run on the first samples, with one step for each norm."""
    found = record(*ALONE)
    for number, norm in enumerate(gradients, 1):
        found.losses.append(Loss(number - 1, value, value.hex(), "train.py:9"))
        step = Step(0, "SGD", number, (norm, norm), number, 1.0, (0.1,), 0.0, ("cuda",), ("float32",), False, "", 0, 0)
        found.steps.append(step)
        found.training += [found.losses[-1], step]
    return Run("any", (found,), {}, "", 1.0)


@pytest.mark.parametrize(
    ("one", "other", "outcome"),
    [
        (1.0, 1.0001, Outcome.PASS),
        (1.0, 1.1, Outcome.FAIL),
        (1.0, math.nan, Outcome.FAIL),
        (math.nan, 1.0, Outcome.FAIL),
        (1.0, math.inf, Outcome.FAIL),
        (math.nan, math.nan, Outcome.PASS),
        (math.inf, math.inf, Outcome.PASS),
    ],
)
def test_a_gradient_that_is_no_number_is_near_to_none(one, other, outcome):
    run = trained(one)
    assert same_batches(run, trained(other), run, run).outcome is outcome


def test_of_several_files_that_differ_the_first_by_name_is_told():
    names = [f"{letter}.pt" for letter in "hgfedcba"]
    run, other = trained(1.0), trained(1.0)
    before, after = (replace(run, files=dict.fromkeys(names, digest)) for digest in ("1", "2"))
    assert same_on_one(before, before, replace(other, files=after.files)).difference.what == "file a.pt"


@pytest.mark.parametrize(("value", "outcome"), [(1.0001, Outcome.PASS), (math.inf, Outcome.NOT_CHECKED)])
def test_a_loss_that_is_no_number_is_near_to_none(value, outcome):
    again = trained(1.0, 2.0)
    again.main.training[0] = Loss(0, 1.00001, (1.00001).hex(), "train.py:9")  # kernels that add in any order
    assert same_on_one(trained(1.0, 2.0), again, trained(1.0, 2.0, value=value)).outcome is outcome
