"""Processes with different numbers of training steps: told beforehand, and ended instead of waiting."""

from __future__ import annotations

import warnings

import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, Sampler, TensorDataset

from runtime import Accelerator, DataLoaderConfiguration
from runtime.errors import UnsupportedArgument


class Own(Sampler):
    """Shares out by itself, unequally."""

    num_replicas = 2

    def __init__(self):
        self.rank = torch.distributed.get_rank()

    def __iter__(self):
        return iter(range(len(self)))

    def __len__(self):
        return 4 + 2 * self.rank


def trained(steps=None, sampler=Own):
    config = DataLoaderConfiguration(even_batches=False)
    accelerator = Accelerator(cpu=True, dataloader_config=config)
    model = nn.Linear(1, 1)
    data = TensorDataset(torch.ones(10, 1))
    loader = DataLoader(data, batch_size=2, sampler=sampler())
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number, (x,) in enumerate(loader, 1):
            accelerator.backward(model(x).mean())
            optimizer.step()
            if number == steps:
                break
    return [str(warning.message) for warning in caught if "training steps" in str(warning.message)]


def warned():
    return trained(2), trained(2, lambda: None), trained(2, lambda: DistributedSampler(range(5)))


def test_the_main_process_says_how_many_steps_each_takes():
    (shared, dealt, alike), silent = run_ranks(warned, 2)
    assert "(rank 0: 2, rank 1: 3)" in shared[0]
    assert "(rank 0: 3, rank 1: 2)" in dealt[0]
    assert alike == []  # PyTorch's own sampler gives each as many
    assert silent == ([], [], [])


def test_a_step_that_one_process_takes_alone_ends():
    """Rank 0 is done and gone; rank 1 waits for its gradients, and is not left waiting."""
    with pytest.raises(AssertionError, match=r"rank 1 (failed|died)"):
        run_ranks(trained, 2, timeout_s=60)


def evaluated_in_samples():
    """Samples without batches, of which three processes have two, one and one."""
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(even_batches=False))
    found = []
    for data in (torch.arange(4), Stream()):
        loader = accelerator.prepare(DataLoader(data, batch_size=None))
        with torch.no_grad():
            found.append([accelerator.gather_for_metrics(torch.as_tensor(x).reshape(1)).tolist() for x in loader])
            found.append([len(list(loader))])
    return found


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(4))


def test_an_evaluation_takes_as_many_steps_on_all_processes():
    assert run_ranks(evaluated_in_samples, 3) == [[[[0, 1, 2], [3]], [2]] * 2] * 3


def dispatched_to_windows():
    """The windows of an accumulation: three batches, of which two processes have two and one."""
    config = DataLoaderConfiguration(even_batches=False, dispatch_batches=True)
    accelerator = Accelerator(cpu=True, dataloader_config=config, gradient_accumulation_steps=2)
    model = nn.Linear(1, 1)
    model, loader = accelerator.prepare(model, DataLoader(TensorDataset(torch.ones(10, 1)), batch_size=2))
    ends = []
    for (x,) in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(x).mean())
        ends.append((accelerator.sync_gradients, accelerator.gradient_state.end_of_dataloader))
    return ends, len(loader)


def test_what_one_process_sends_is_even():
    """All get something in each step, so all know the same step to be the last, and exchange gradients in it."""
    assert run_ranks(dispatched_to_windows, 2) == [([(False, False), (True, False), (True, True)], 3)] * 2


def test_joining_is_refused_with_the_way_out():
    with pytest.raises(UnsupportedArgument, match=r"join_uneven_inputs\(\).*even_batches=True"):
        Accelerator(cpu=True).join_uneven_inputs([])
