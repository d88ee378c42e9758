"""Iterable data sets: each process makes no more of them than it needs."""

from __future__ import annotations

from types import SimpleNamespace

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
