"""Batch sizes that fit: what counts as out of memory, which size comes next, and that processes agree."""

from __future__ import annotations

from datetime import timedelta

import pytest
import torch
from ranks import run_ranks

from runtime import Accelerator, find_executable_batch_size, memory, release_memory
from runtime.errors import WorldError


def out_of_memory():
    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def fits_up_to(limit, tried, error=out_of_memory):
    def train(batch_size, *arguments, **options):
        tried.append(batch_size)
        if batch_size > limit:
            raise error()
        return batch_size, arguments, options

    return train


def test_the_first_size_that_fits_is_kept():
    tried = []
    search = find_executable_batch_size(fits_up_to(80, tried), starting_batch_size=100)
    assert search("model", lr=1) == (72, ("model",), {"lr": 1})
    assert search() == (72, (), {})
    assert tried == [100, 90, 81, 72, 72]


def test_a_function_says_which_size_is_next():
    sizes, tried = iter([7, 3]), []

    @find_executable_batch_size(starting_batch_size=8, reduce_batch_size_fn=lambda: next(sizes))
    def train(batch_size):
        return fits_up_to(4, tried)(batch_size)

    assert train()[0] == 3
    assert tried == [8, 7, 3]
    assert train.__name__ == "train"


@pytest.mark.parametrize(
    "error",
    [
        out_of_memory(),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"),
        RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear"),
    ],
    ids=lambda error: str(error)[:12],
)
def test_what_a_smaller_batch_may_help_with(error):
    def fail():
        raise error

    tried = []
    assert find_executable_batch_size(fits_up_to(1, tried, fail), starting_batch_size=2)()[0] == 1


def test_other_errors_come_through():
    def fail():
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        find_executable_batch_size(fits_up_to(1, [], fail), starting_batch_size=2)()
    with pytest.raises(RuntimeError, match="reached zero"):
        find_executable_batch_size(fits_up_to(0, []), starting_batch_size=2)()


def test_a_batch_size_of_ones_own_is_an_error():
    def train(batch_size, model):
        raise AssertionError("must not run")

    with pytest.raises(TypeError, match=r"train: too many positional arguments. Its first argument is the batch size"):
        find_executable_batch_size(train)(32, "model")


def test_objects_are_released():
    model, batch = release_memory(torch.ones(2), torch.ones(2))
    assert (model, batch) == (None, None)


def on_two_processes():
    """Rank 1 runs out of memory above 80, rank 0 never; then rank 1 does not come to the end."""
    accelerator = Accelerator(cpu=True)
    rank, tried = accelerator.process_index, []
    search = find_executable_batch_size(fits_up_to(80 if rank else 1000, tried), starting_batch_size=100)
    found = [search()[0], search()[0]]
    accelerator.wait_for_everyone()
    said = ""
    if not accelerator.is_main_process:
        accelerator.wait_for_everyone()
        return found, tried, said
    memory.PATIENCE = timedelta(seconds=0.5)
    try:
        search()
    except WorldError as error:
        said = str(error)
    accelerator.wait_for_everyone()
    return found, tried, said


def test_processes_agree_on_the_size():
    (main, main_tried, said), (other, tried, _) = run_ranks(on_two_processes, 2)
    assert main == other == [72, 72]
    assert tried == [100, 90, 81, 72, 72]
    assert main_tried == [*tried, 72]
    assert said.startswith("rank 0 is done, and another rank does not end its attempt")
