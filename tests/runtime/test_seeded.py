"""`use_seedable_sampler`: the order of a DistributedSampler that hands out everything, at any number of processes."""

from __future__ import annotations

import os

import pytest
import torch
from ranks import run_ranks
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler

from runtime import Accelerator, DataLoaderConfiguration

DATA = list(range(23))


def prepared(seed=0, split=False, **settings):
    config = DataLoaderConfiguration(use_seedable_sampler=True, data_seed=seed, split_batches=split)
    accelerator = Accelerator(cpu=True, dataloader_config=config)
    return accelerator.prepare(DataLoader(DATA, **{"batch_size": 4, "shuffle": True, **settings}))


def by_hand(seed, epoch):
    sampler = DistributedSampler(DATA, num_replicas=1, rank=0, seed=seed)
    sampler.set_epoch(epoch)
    return [batch.tolist() for batch in DataLoader(DATA, batch_size=4, sampler=sampler)]


def batches(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("epoch", [0, 3])
def test_the_order_is_that_of_a_distributed_sampler(seed, epoch):
    loader = prepared(seed)
    loader.set_epoch(epoch)
    assert batches(loader) == by_hand(seed, epoch)


def test_a_whole_pass_goes_on_to_the_next_epoch():
    loader = prepared()
    assert [batches(loader) for _ in range(3)] == [by_hand(0, epoch) for epoch in range(3)]


def test_a_pass_that_is_left_does_not():
    loader = prepared()
    next(iter(loader))
    assert batches(loader) == by_hand(0, 0)


def test_no_other_generator_is_asked():
    torch.manual_seed(3)
    batches(DataLoader(DATA, batch_size=4, sampler=SequentialSampler(DATA)))
    expected = torch.rand(1)
    torch.manual_seed(3)
    batches(prepared())
    assert torch.rand(1) == expected


def test_loaders_that_do_not_shuffle_stay():
    assert batches(prepared(shuffle=False)) == [DATA[i : i + 4] for i in range(0, 23, 4)]


def test_without_batches():
    assert [int(x) for x in prepared(batch_size=None)] == [int(x) for batch in by_hand(0, 0) for x in batch]


def test_the_seed_is_the_programs_own_where_none_is_given():
    torch.manual_seed(5)
    assert batches(prepared(None)) == by_hand(5, 0)


def test_the_loader_itself_keeps_its_sampler():
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
    loader = DataLoader(DATA, batch_size=4, shuffle=True)
    sampler = loader.sampler
    accelerator.prepare(loader)
    assert loader.sampler is sampler


def own_shares(seed=0):
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank if seed == 0 else 2**64 - 100 - rank)  # as large as that of an unseeded program may be
    loader = prepared(seed, split=True)
    loader.set_epoch(2)
    return batches(loader)


def test_two_processes_share_that_order():
    first, second = run_ranks(own_shares, 2)
    assert [[*a, *b] for a, b in zip(first[:-1], second[:-1], strict=True)] == by_hand(0, 2)[:-1]


def test_two_processes_share_the_seed_that_rank_0_started_with():
    first, second = run_ranks(own_shares, 2, None)
    assert [[*a, *b] for a, b in zip(first[:-1], second[:-1], strict=True)] == by_hand(2**64 - 100, 2)[:-1]
