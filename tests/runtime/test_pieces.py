"""Orders in tensors are those of PyTorch's samplers, and what is cut from them is what is cut from lists."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

from runtime.data.order import agreed_pieces
from runtime.data.pieces import Windows, is_known, names_of
from runtime.data.plan import deal_pieces, deal_rows, own_rows, share_out, share_pieces
from runtime.world import World

DATA = range(37)


def generator():
    return torch.Generator().manual_seed(3)


SAMPLERS = {
    "sequential": lambda: SequentialSampler(DATA),
    "random": lambda: RandomSampler(DATA),
    "generator": lambda: RandomSampler(DATA, generator=generator()),
    "fewer": lambda: RandomSampler(DATA, num_samples=10, generator=generator()),
    "more": lambda: RandomSampler(DATA, num_samples=100, generator=generator()),
    "twice": lambda: RandomSampler(DATA, num_samples=74),
    "replacement": lambda: RandomSampler(DATA, replacement=True, num_samples=100),
    "replacement, generator": lambda: RandomSampler(DATA, replacement=True, num_samples=64, generator=generator()),
    "subset": lambda: SubsetRandomSampler([5, 3, 9, 30]),
    "subset, generator": lambda: SubsetRandomSampler([5, 3, 9, 30], generator=generator()),
    "weighted": lambda: WeightedRandomSampler(torch.arange(1.0, 38.0), 50),
    "weighted, once": lambda: WeightedRandomSampler(torch.arange(1.0, 38.0), 20, replacement=False),
    "weighted, generator": lambda: WeightedRandomSampler([1.0, 2.0, 3.0], 9, generator=generator()),
}


def state_of(sampler):
    own = getattr(sampler, "generator", None)
    return [state.numpy().tobytes() for state in (torch.get_rng_state(), *([own.get_state()] if own else []))]


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("batch_size", [4, 37, 50])
def test_the_order_and_the_draws_are_those_of_pytorch(kind, batch_size):
    """Batch by batch: also the generators stand where PyTorch's sampler would have left them by then."""
    theirs, ours = SAMPLERS[kind](), SAMPLERS[kind]()
    assert is_known(ours)
    names = names_of(ours)
    torch.manual_seed(7)
    expected = [(batch, state_of(theirs)) for batch in BatchSampler(theirs, batch_size, drop_last=False)]
    end = state_of(theirs)
    torch.manual_seed(7)
    found = []
    for batch, _ in share_pieces(agreed_pieces(ours, World()), 0, 1, size=batch_size, drop_last=False):
        found.append((batch if names is None else [names[i] for i in batch], state_of(ours)))
    assert found == expected
    assert state_of(ours) == end


def test_an_order_that_is_left_early_draws_what_pytorch_draws():
    torch.manual_seed(7)
    first = next(iter(RandomSampler(DATA)))
    expected = torch.rand(1)
    torch.manual_seed(7)
    assert next(agreed_pieces(RandomSampler(DATA), World()))[0] == first
    assert torch.rand(1) == expected


def test_samplers_of_other_classes_are_not_known():
    class Own(RandomSampler):
        def __iter__(self):
            return iter([1])

    assert not is_known(Own(DATA))
    assert not is_known([1, 2])


def pieces_of(count, lengths):
    """The numbers below `count` in pieces of these lengths, over and over."""
    start, turn = 0, 0
    while start < count:
        stop = min(start + lengths[turn % len(lengths)], count)
        yield torch.arange(start, stop)
        start, turn = stop, turn + 1


SIZES = st.integers(0, 40)
LENGTHS = st.lists(st.integers(1, 17), min_size=1, max_size=4)
BATCHES = st.integers(1, 9)
WORLDS = st.integers(1, 5)


@settings(deadline=None)  # no test of time
@given(SIZES, LENGTHS, BATCHES, WORLDS, st.booleans(), st.booleans(), st.integers(0, 12))
def test_dealing_pieces_is_dealing_rows(count, lengths, size, world, even, drop_last, done):
    batches = list(BatchSampler(range(count), size, drop_last))
    for rank in range(world):
        found = list(
            deal_pieces(
                pieces_of(count, lengths), rank, world, size=size, even=even, drop_last=drop_last, skip=done * size
            )
        )
        assert found == list(deal_rows(batches, rank, world, size=size, even=even, drop_last=drop_last, skip=done))


@settings(deadline=None)  # no test of time
@given(SIZES, LENGTHS, BATCHES, WORLDS, st.booleans(), st.integers(0, 12))
def test_sharing_out_pieces_is_sharing_out_batches(count, lengths, size, world, drop_last, done):
    batches = list(BatchSampler(range(count), size, drop_last))
    for rank in range(world):
        pieces = pieces_of(count, lengths)
        found = list(share_pieces(pieces, rank, world, size=size, drop_last=drop_last, skip=done * size))
        assert found == list(share_out(batches[done:], rank, world))


@settings(deadline=None)  # no test of time
@given(SIZES, LENGTHS, BATCHES, WORLDS, st.integers(0, 40))
def test_from_any_place_on_every_sample_comes_once(count, lengths, size, world, skip):
    """Also where the place is no whole number of rounds, as after another number of processes."""
    dealt = [
        list(deal_pieces(pieces_of(count, lengths), rank, world, size=size, even=True, drop_last=False, skip=skip))
        for rank in range(world)
    ]
    counting = [
        number
        for step in zip(*dealt, strict=True)
        for rank, (indices, share) in enumerate(step)
        for number in indices[: share.valid[rank]]
    ]
    assert counting == list(range(skip, count))


@settings(deadline=None)  # no test of time
@given(SIZES, BATCHES, WORLDS, st.booleans(), st.integers(0, 9))
def test_a_resumed_epoch_ends_as_one_that_was_not_interrupted(count, size, world, even, done):
    """The last round is completed with the start of the epoch, not of what was left of it."""
    for rank in range(world):
        whole, rest = (
            list(deal_pieces(pieces_of(count, [7]), rank, world, size=size, even=even, drop_last=False, skip=skip))
            for skip in (0, done * size * world)
        )
        assert rest == whole[done:]


@settings(deadline=None)  # no test of time
@given(SIZES, LENGTHS, BATCHES)
def test_windows_and_their_rest_are_everything(count, lengths, size):
    found = Windows(pieces_of(count, lengths), size, 0, size)
    batches = [batch for some in found for batch in some]
    assert [number for batch in batches for number in batch] + found.rest == list(range(count))
    assert {len(batch) for batch in batches} <= {size}
    assert len(found.rest) < size


def test_few_numbers_become_pythons_at_once():
    """What is made ahead does not grow with the data set."""
    made = [len(some) * len(some[0]) for some in islice(Windows(iter([torch.arange(1_000_000)]), 512 * 32, 0, 32), 9)]
    assert max(made) <= 8192
    assert made[0] == 128


def test_the_rows_of_a_rank_without_any_are_the_first():
    assert own_rows([4, 5], 3, 4) == [4]
