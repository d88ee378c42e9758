"""The views that scripts written for Accelerate ask."""

from __future__ import annotations

import os

import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.utils.data import DataLoader

from runtime import Accelerator, AcceleratorState, DistributedType, GradientState, PartialState
from runtime.loading import prepare_data_loader


def without_accelerator():
    state = PartialState(cpu=True)
    told = []
    state.on_process(lambda: told.append("one"), process_index=1)()
    assert state.use_distributed
    with state.split_between_processes([1, 2, 3]) as own:
        pass
    with state.main_process_first():
        pass
    state.wait_for_everyone()
    state.debug = False
    assert not state.debug
    text = repr(AcceleratorState(mixed_precision="bf16", cpu=True))
    again = PartialState().num_processes
    state.destroy_process_group()
    return (
        (state.num_processes, state.process_index, state.is_main_process, state.is_last_process),
        (state.distributed_type, state.backend, state.device.type, again),
        told,
        own,
        text,
    )


def test_processes_without_an_accelerator():
    first, second = run_ranks(without_accelerator, 2)
    assert first[0] == (2, 0, True, False)
    assert second[0] == (2, 1, False, True)
    assert first[1][:3] == (DistributedType.MULTI_CPU, "gloo", "cpu")
    assert (first[2], second[2]) == ([], ["one"])
    assert (first[3], second[3]) == ([1, 2], [3])
    assert "MULTI_CPU  Backend: gloo\nNum processes: 2\nProcess index: 1\n" in second[4]
    assert second[4].endswith("Mixed precision type: bf16\n")


def test_a_process_that_is_the_only_one_is_any_process():
    state = PartialState(cpu=True)
    assert state.on_process(lambda: "ran", process_index=3)() == "ran"
    assert state.on_local_process(local_process_index=3)(lambda: "ran")() == "ran"
    assert state.on_last_process(lambda: "ran")() == "ran"


def test_views_follow_the_accelerator_that_was_made_last():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, mixed_precision="bf16")
    state = AcceleratorState()
    assert (state.mixed_precision, state.device, state.num_processes) == ("bf16", torch.device("cpu"), 1)
    assert state.distributed_type is DistributedType.NO
    assert state.distributed_type != DistributedType.DEEPSPEED
    assert accelerator.state.deepspeed_plugin is None
    with pytest.raises(ValueError, match=r"contradicts the accelerator's 'bf16'"):
        AcceleratorState(mixed_precision="no")
    with pytest.raises(ValueError, match=r"mixed_precision='half' is not known. Known: no, bf16, fp16"):
        AcceleratorState(mixed_precision="half")
    gradient_state = GradientState()
    assert (gradient_state.num_steps, gradient_state.sync_gradients) == (2, True)
    assert (gradient_state.in_dataloader, gradient_state.end_of_dataloader) == (False, False)
    model, loader = accelerator.prepare(nn.Linear(1, 1), DataLoader(torch.ones(3, 1)))
    seen = []
    for _ in loader:
        with accelerator.accumulate(model):
            now = accelerator.gradient_state
            seen.append((now.sync_gradients, now.in_dataloader, now.end_of_dataloader, now.remainder))
    assert seen == [(False, True, False, -1), (True, True, False, -1), (True, True, True, -1)]
    AcceleratorState._reset_state()
    with pytest.raises(AttributeError, match=r"`AcceleratorState._reset_state\(\)` was called"):
        accelerator.prepare(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="Make the Accelerator first"):
        GradientState()
    assert Accelerator(cpu=True).state.mixed_precision == "no"


def evaluated_elsewhere():
    """A loop over a loader of one accelerator, in which another one is asked."""
    loader = Accelerator(cpu=True, split_batches=True).prepare(DataLoader(range(5), batch_size=2))
    other = Accelerator(cpu=True)
    assert other.prepare(loader) is loader
    with torch.no_grad():
        gathered = [other.gather_for_metrics(batch).tolist() for batch in loader]
        ends = [GradientState().end_of_dataloader for _ in loader]
    return gathered, ends, GradientState().in_dataloader


def test_loops_are_known_to_every_accelerator():
    """A second one, made where a model is evaluated, counted rows that are only there so that each process has some."""
    expected = [[0, 1], [2, 3], [4]], [False, False, True], False
    assert run_ranks(evaluated_elsewhere, 2) == [expected, expected]


def prepared_by_function():
    a = Accelerator(cpu=True)
    own = [batch.tolist() for batch in prepare_data_loader(DataLoader(range(8), batch_size=2))]
    halves = [batch.tolist() for batch in prepare_data_loader(DataLoader(range(4), batch_size=2), split_batches=True)]
    with pytest.raises(ValueError, match=f"this is process {a.process_index} of 2"):
        prepare_data_loader(DataLoader(range(4)), num_processes=3)
    return own, halves


def test_a_loader_is_prepared_by_the_function():
    first, second = run_ranks(prepared_by_function, 2)
    assert first == ([[0, 1], [4, 5]], [[0], [2]])
    assert second == ([[2, 3], [6, 7]], [[1], [3]])
    with pytest.raises(ValueError, match=r"slice_fn_for_dispatch=\.\.\..*Leave it out"):
        prepare_data_loader(DataLoader(range(4)), slice_fn_for_dispatch=max)
    assert "RANK" not in os.environ


@pytest.mark.parametrize("steps", [1, 2])
def test_the_last_step_of_a_loop_is_known_on_one_process(steps):
    """Where nothing has to be counted a loop is PyTorch's own iterator, and was not seen to end, or to be there."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=steps)
    state = accelerator.gradient_state
    loader, other = accelerator.prepare(DataLoader([1, 2]), DataLoader([1, 2, 3], shuffle=True))
    seen = [[state.end_of_dataloader, *(state.end_of_dataloader for _ in other)] for _ in loader]
    assert seen == [[False, False, False, True], [True, False, False, True]]
    assert not state.in_dataloader
    for _ in loader:
        assert state.in_dataloader
        break
    assert (state.in_dataloader, state.end_of_dataloader) == (False, False)
