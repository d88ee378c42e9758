"""Batches of one process and of several: the same samples, others, or such as may differ."""

import pytest

from migrate.verify.compare.batches import Sharing, samples
from migrate.verify.records import Batch, Record


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
