"""Memory: giving it back, and the batch size that fits into it."""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from runtime.devices import kinds_here
from runtime.errors import WorldError
from runtime.world import World

R = TypeVar("R")

PATIENCE = distributed_c10d.default_pg_timeout  # what PyTorch gives a collective
_MESSAGES = (  # of a RuntimeError, where PyTorch has no class for it
    "out of memory",
    "can't allocate memory",  # the CPU's allocator
    "not enough memory",  # the same on Windows
    "CUDNN_STATUS_NOT_SUPPORTED",  # what cuDNN says when its workspace does not fit
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_ALLOC_FAILED",
)
_ATTEMPTS = itertools.count()  # names what processes tell each other: the same on all, since all try equally often


def clear_device_cache(garbage_collection: bool = False) -> None:
    """Give cached memory of every kind of device back to the system.

    Args:
        garbage_collection: collect garbage first.
    """
    if garbage_collection:
        gc.collect()
    for kind in kinds_here():
        kind.empty_cache()


def release_memory(*objects: Any) -> list[None]:
    """Collect garbage and empty caches, once the caller holds the objects no more.

    Write `model, batch = release_memory(model, batch)`.

    Returns:
        One None for every object.
    """
    count = len(objects)
    del objects
    clear_device_cache(garbage_collection=True)
    return [None] * count


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller batch may help: by the error's class, or by its message where PyTorch has none."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _MESSAGES)


def find_executable_batch_size(
    function: Callable[..., R] | None = None,
    starting_batch_size: int = 128,
    reduce_batch_size_fn: Callable[[], int] | None = None,
) -> Callable[..., Any]:
    """A decorator: the function is given a batch size as its first argument, and a smaller one if memory runs out.

    Of several processes all try again if one has run out of memory, so all have the same batch size. A later call
    begins with the size that the last one has found.

    Args:
        starting_batch_size: the first to try.
        reduce_batch_size_fn: gives the next; without it, nine tenths, rounded down.

    Raises:
        RuntimeError: the batch size has come to zero.
        TypeError: the caller passes a batch size, too.
        WorldError: a process ran out of memory while others waited for it in the middle of a step.
    """
    if function is None:
        return functools.partial(
            find_executable_batch_size,
            starting_batch_size=starting_batch_size,
            reduce_batch_size_fn=reduce_batch_size_fn,
        )
    batch_size = starting_batch_size

    @functools.wraps(function)
    def search(*arguments: Any, **options: Any) -> R:
        nonlocal batch_size
        _check_call(function, arguments, options)
        while batch_size > 0:
            clear_device_cache(garbage_collection=True)
            fits, result = _attempt(function, batch_size, arguments, options)
            if _all_fit(fits):
                return cast("R", result)
            del result
            batch_size = int(batch_size * 0.9) if reduce_batch_size_fn is None else reduce_batch_size_fn()
        raise RuntimeError("No executable batch size found, reached zero.")

    return search


def _attempt(function: Callable[..., Any], size: int, arguments: Any, options: Any) -> tuple[bool, Any]:
    try:
        return True, function(size, *arguments, **options)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return False, None  # the error goes, and with it the frames that hold tensors


def _check_call(function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    try:
        inspect.signature(function).bind(0, *arguments, **options)
    except TypeError as error:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{name}: {error}. Its first argument is the batch size, which is given to it.") from None


def _all_fit(fits: bool) -> bool:
    """Whether the batch size was fine on all processes.

    They tell each other through the store that joined them: a collective of ours would meet those of a step that
    other processes are still in.

    Raises:
        WorldError: another process does not come to the end of its attempt within `PATIENCE`.
    """
    world = World.from_environment(os.environ)
    if world.size == 1 or not dist.is_initialized():
        return fits
    store, number = distributed_c10d._get_default_store(), next(_ATTEMPTS)  # noqa: SLF001  there is no public name
    keys = [f"runtime/batch_size/{number}/{rank}" for rank in range(world.size)]
    store.set(keys[world.rank], "1" if fits else "0")
    try:
        store.wait(keys, PATIENCE)
    except RuntimeError as error:
        raise WorldError(
            f"rank {world.rank} {'is done' if fits else 'ran out of memory'}, and another rank does not end its "
            "attempt: it waits for this one in a step, or still computes. Start with a smaller batch size."
        ) from error
    return all(store.get(key) == b"1" for key in keys)
