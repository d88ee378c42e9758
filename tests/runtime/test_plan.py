"""The index plan: what is shared out or dealt is what was there, and all ranks take the same steps."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.data.plan import deal_rows, deal_whole, dealt_steps, share_of, share_out
from runtime.split import part

WORLDS = st.integers(1, 7)


def batches_of(size, batch_size, drop_last):
    whole = [list(range(start, min(start + batch_size, size))) for start in range(0, size, batch_size)]
    return [batch for batch in whole if not drop_last or len(batch) == batch_size]


@given(st.integers(0, 200), WORLDS)
def test_part_cuts_into_contiguous_parts_of_almost_one_size(count, world):
    bounds = [part(count, rank, world) for rank in range(world)]

    assert [index for start, stop in bounds for index in range(start, stop)] == list(range(count))
    sizes = [stop - start for start, stop in bounds]
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(0, 20), max_size=8), WORLDS)
def test_sharing_out_gives_back_every_batch(sizes, world):
    """Joined in rank order, the rows that count are the batch; only a rank without rows holds one that does not."""
    batches = [list(range(size)) for size in sizes]
    per_rank = [list(share_out(batches, rank, world)) for rank in range(world)]

    for step, batch in enumerate(batches):
        shares = {taken[step][1] for taken in per_rank}
        assert len(shares) == 1
        share = shares.pop()
        held = [taken[step][0] for taken in per_rank]
        assert tuple(map(len, held)) == share.rows
        assert list(chain.from_iterable(rows[:n] for rows, n in zip(held, share.valid, strict=True))) == batch
        assert all(set(rows) <= set(batch) for rows in held)
        assert not batch or min(share.rows) >= 1


@given(st.integers(0, 100), st.integers(1, 9), st.booleans(), WORLDS)
def test_dealing_gives_every_rank_the_same_steps_and_every_sample_once(size, batch_size, drop_last, world):
    batches = batches_of(size, batch_size, drop_last)
    per_rank = [
        list(deal_rows(batches, rank, world, size=batch_size, even=True, drop_last=drop_last)) for rank in range(world)
    ]

    steps = dealt_steps(len(batches), world, drop_last=drop_last, even=True, rank=0)
    assert {len(taken) for taken in per_rank} == {steps}
    counting = []
    for step in range(steps):
        share = per_rank[0][step][1]
        for rank in range(world):
            indices, seen = per_rank[rank][step]
            assert seen == share
            assert len(indices) == share.rows[rank] == batch_size
            counting += indices[: share.valid[rank]]
    expected = list(chain.from_iterable(batches))
    assert counting == (expected[: len(counting)] if drop_last else expected)


@given(st.lists(st.integers(1, 9), max_size=12), WORLDS, st.booleans())
def test_dealing_whole_items_recycles_from_the_start(sizes, world, drop_last):
    items = [[number] * size for number, size in enumerate(sizes)]
    per_rank = [list(deal_whole(items, rank, world, even=True, drop_last=drop_last)) for rank in range(world)]

    steps = dealt_steps(len(items), world, drop_last=drop_last, even=True, rank=0)
    assert {len(taken) for taken in per_rank} == {steps}
    dealt = [per_rank[rank][step] for step in range(steps) for rank in range(world)]
    assert [item for item, _ in dealt] == [items[i % len(items)] for i in range(steps * world)]
    for i, (item, share) in enumerate(dealt):
        assert share.rows[i % world] == len(item)
        assert share.valid[i % world] == (len(item) if i < len(items) else 0)


@given(st.integers(0, 40), st.integers(1, 5), WORLDS)
def test_dealing_unevenly_hands_every_batch_out_once(size, batch_size, world):
    batches = batches_of(size, batch_size, drop_last=False)
    for deal in (
        lambda rank: deal_rows(batches, rank, world, size=batch_size, even=False, drop_last=False),
        lambda rank: deal_whole(batches, rank, world, even=False),
    ):
        per_rank = [[indices for indices, _ in deal(rank)] for rank in range(world)]
        assert [len(taken) for taken in per_rank] == [
            dealt_steps(len(batches), world, drop_last=False, even=False, rank=rank) for rank in range(world)
        ]
        assert sorted(chain.from_iterable(per_rank)) == batches


@pytest.mark.parametrize(
    ("count", "world", "weights"), [(4, 2, (1.0, 1.0)), (3, 2, (4 / 3, 2 / 3)), (1, 3, (3.0, 0.0, 0.0))]
)
def test_weights_make_the_mean_of_means_the_mean_of_rows(count, world, weights):
    share = share_of(count, world)

    assert tuple(share.weight(rank) for rank in range(world)) == pytest.approx(weights)


@given(st.integers(1, 50), WORLDS)
def test_weights_keep_their_mean_of_one(count, world):
    share = share_of(count, world)

    assert sum(share.weight(rank) for rank in range(world)) == pytest.approx(world)
