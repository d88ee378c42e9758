"""Iterable data sets: each process makes no more of them than it needs."""

from __future__ import annotations

import random
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from runtime import Accelerator


class Numbers(IterableDataset):
    """Shares out over its workers by itself, as such data sets do."""

    def __init__(self, rank=0, size=1):
        self._distributed = SimpleNamespace(rank=rank, world_size=size)  # as datasets.IterableDataset has it

    def __iter__(self):
        worker = get_worker_info()
        step = 1 if worker is None else worker.num_workers
        yield from range(0 if worker is None else worker.id, 18, step * self._distributed.world_size)


def read():
    accelerator = Accelerator(cpu=True)
    rank = torch.distributed.get_rank()
    collated = []

    def collate(samples):
        collated.append(samples)
        return torch.tensor(samples)

    dealt = [batch.tolist() for batch in accelerator.prepare(DataLoader(Numbers(), 4, collate_fn=collate))]
    workers = {"num_workers": 2, "multiprocessing_context": "fork"}
    working = [batch.tolist() for batch in accelerator.prepare(DataLoader(Numbers(), 3, **workers))]
    split = [batch.tolist() for batch in accelerator.prepare(DataLoader(Numbers(rank, 2), 9))]
    return dealt, collated, working, split


def test_two_processes_read_and_collate_what_is_theirs():
    found = run_ranks(read, 2)
    together = [batch for step in zip(found[0][0], found[1][0], strict=True) for batch in step]
    assert together == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15], [16, 17], [0, 1, 2, 3]]
    for dealt, collated, _, _ in found:
        assert dealt == collated
    working = [batch for step in zip(found[0][2], found[1][2], strict=True) for batch in step]
    assert working == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11], [12, 14, 16], [13, 15, 17]]
    assert found[0][3] == [[0, 2, 4, 6, 8, 10, 12, 14, 16]]  # split by node already: used as it is


def collated_anew(is_stream, batch_size):
    """What a loader gives that is given another collate_fn between two epochs."""
    data = Numbers() if is_stream else list(range(18))
    loader = Accelerator(cpu=True, split_batches=True).prepare(DataLoader(data, batch_size))
    before = [batch.tolist() for batch in loader]
    loader.collate_fn = lambda samples: -torch.tensor(samples)
    return before, [batch.tolist() for batch in loader]


@pytest.mark.parametrize("is_stream", [True, False])
def test_another_collate_fn_counts_from_the_next_pass_on(is_stream):
    """On several processes the first one was kept."""
    (first, negative), (second, other) = run_ranks(collated_anew, 2, is_stream, 6)
    assert first == [[0, 1, 2], [6, 7, 8], [12, 13, 14]]
    assert negative == [[-number for number in batch] for batch in first]
    assert other == [[-number for number in batch] for batch in second]


class Endless(IterableDataset):
    """Has no length, and fails at its end where it is told to."""

    def __init__(self, count, fails=False):
        self.count, self.fails = count, fails

    def __iter__(self):
        yield from torch.arange(float(self.count)).unsqueeze(1)
        if self.fails:
            raise OSError("the connection is gone")


def windows(count, fails=False):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    model, loader = accelerator.prepare(nn.Linear(1, 1), DataLoader(Endless(count, fails), batch_size=1))
    due = []
    for _ in range(2):
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).sum())
                due.append(accelerator.sync_gradients)
    return due


@pytest.mark.parametrize("world", [1, 2])
def test_the_last_batch_of_a_stream_without_a_length_ends_a_window(world):
    """It was taken for any other: its gradients went into the first window of the next epoch, or were lost."""
    for due in [windows(6)] if world == 1 else run_ranks(windows, world, 6 * world):
        assert due == 2 * [False, False, False, True, False, True]


def test_a_stream_that_fails_has_given_what_it_had():
    due = []
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, loader = accelerator.prepare(nn.Linear(1, 1), DataLoader(Endless(3, fails=True), batch_size=1))
    batches = iter(loader)
    for _ in range(3):
        next(batches)
        with accelerator.accumulate(model):
            due.append(accelerator.sync_gradients)
    with pytest.raises(OSError, match="the connection is gone"):
        next(batches)
    assert due == [False, True, False]


DRAWS = {
    "random": lambda size: random.sample(range(size), size),
    "numpy": lambda size: np.random.permutation(size).tolist(),  # noqa: NPY002  what scripts use
    "torch": lambda size: torch.randperm(size).tolist(),
}


class Shuffled(IterableDataset):
    """Keeps a few in a buffer, and draws with every sample which of them comes next."""

    def __init__(self, draw):
        self.draw = draw

    def __iter__(self):
        buffer = []
        for number in range(20):
            buffer.append(number)
            if len(buffer) == 4:
                yield buffer.pop(DRAWS[self.draw](4)[0])
        yield from buffer


class Own(DataLoader):
    """Has an order of its own, which it draws when it is iterated."""

    def __iter__(self):
        for number in DRAWS["random"](20):
            yield torch.tensor([number])


def seeded(seed):
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  as above
    torch.manual_seed(seed)


def drawn_orders(draw, options):
    """The samples of two epochs, while each process draws as many numbers of its own as it likes."""
    accelerator = Accelerator(cpu=True, split_batches=options.pop("split_batches", False))
    seeded(accelerator.process_index)
    data = Shuffled(draw)
    loader = accelerator.prepare(Own(range(20)) if draw == "own" else DataLoader(data, 2, **options))
    epochs = []
    for _ in range(2):
        epochs.append([])
        for batch in loader:
            epochs[-1].append(batch.tolist())
            for _ in range(accelerator.process_index * 3 + 1):
                (random.random(), np.random.rand(), torch.rand(1))  # noqa: NPY002, S311  as above
    return epochs


@pytest.mark.parametrize(
    ("draw", "options"),
    [
        *((draw, {}) for draw in (*DRAWS, "own")),
        ("torch", {"split_batches": True}),
        ("random", {"num_workers": 1, "multiprocessing_context": "fork"}),
    ],
)
def test_a_stream_that_shuffles_is_read_in_one_order_by_all(draw, options):
    """Each process drew an order of its own, and took its share of that: samples came twice, or not at all."""
    for mine, other in zip(*run_ranks(drawn_orders, 2, draw, options), strict=True):
        assert sorted(number for batch in (*mine, *other) for number in batch) == list(range(20))


def masked(samples):
    """A collate_fn that draws for each of its rows."""
    return torch.tensor(samples) * 1000 + int(torch.randint(1000, (len(samples),))[0])


def collated_while_shuffling(split):
    accelerator = Accelerator(cpu=True, split_batches=split)
    loader = accelerator.prepare(DataLoader(Shuffled("torch"), 3, collate_fn=masked))
    return [number // 1000 for batch in loader for number in batch.tolist()]


@pytest.mark.parametrize("split", [True, False])
def test_what_a_process_draws_for_its_own_rows_does_not_change_the_order(split):
    mine, other = run_ranks(collated_while_shuffling, 2, split)
    assert sorted({*mine, *other}) == list(range(20))
    assert len(mine) + len(other) == (20 if split else 23)  # dealt, the last round is completed


def test_a_generator_that_only_a_stream_draws_from_goes_on_as_on_one_process():
    alone = run_ranks(plain_orders, 1)[0]
    assert run_ranks(plain_orders, 2) == [alone, alone]


def plain_orders():
    """What comes of two epochs that are drawn with `random` alone."""
    accelerator = Accelerator(cpu=True)
    random.seed(accelerator.process_index)
    loader = accelerator.prepare(DataLoader(Shuffled("random"), 2))
    return [batch.tolist() for _ in range(2) for batch in accelerator.whole_batches(loader)]


class Apart(IterableDataset):
    """Draws its order from a generator of its own, or gives each process its part without saying so."""

    def __init__(self, order):
        self.order = order

    def __iter__(self):
        yield from self.order


def read_apart(is_alike, split):
    accelerator = Accelerator(cpu=True, split_batches=split)
    own = random.Random(1 if is_alike else accelerator.process_index)  # noqa: S311  no secret
    loader = accelerator.prepare(DataLoader(Apart(own.sample(range(20), 20)), 2))
    with (
        pytest.warns(UserWarning, match="different first samples of a Apart")
        if not is_alike and (accelerator.is_main_process)
        else nullcontext()
    ):
        list(loader)
    list(loader)  # told once


@pytest.mark.parametrize("is_alike", [True, False])
@pytest.mark.parametrize("split", [True, False])
def test_processes_that_read_different_samples_are_told(is_alike, split):
    run_ranks(read_apart, 2, is_alike, split)
