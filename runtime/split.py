"""Parts of a whole, one for each process: contiguous, in order, the first `length % processes` with one more.

`split` is `split_between_processes`: of a list, tuple, range, string, tensor, dictionary of these, or data set. Nothing
is exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data import Dataset, Subset

from runtime.errors import ConfigurationError


def part(count: int, rank: int, world: int) -> tuple[int, int]:
    """The start and stop of what is of `rank`, out of `count`."""
    size, extra = divmod(count, world)
    start = rank * size + min(rank, extra)
    return start, start + size + (rank < extra)


def split(inputs: Any, rank: int, world: int, apply_padding: bool = False) -> Any:
    """The part of `rank`; the input itself on one process.

    Args:
        apply_padding: repeat the last element of the whole input until all parts are equally long.

    Returns:
        A part of the type of the input (of a data set of PyTorch's a `Subset`); `inputs` itself on one process.

    Raises:
        ConfigurationError: the values of a dictionary differ in length.
        TypeError: the input cannot be cut.
    """
    if world == 1:
        return inputs
    length = _length(inputs)
    start, stop = part(length, rank, world)
    longest = -(-length // world)
    return _cut(inputs, start, stop, longest - (stop - start) if apply_padding else 0)


def _length(inputs: Any) -> int:
    if not isinstance(inputs, Mapping):
        has_rows = getattr(inputs, "ndim", 1) > 0  # a tensor or array without dimensions has a length by name only
        if not (has_rows and hasattr(inputs, "__len__") and hasattr(inputs, "__getitem__")):
            raise TypeError(
                f"split_between_processes cannot cut a {type(inputs).__name__}. Pass a list, tuple, tensor, data set, "
                "or a dictionary of these."
            )
        return len(inputs)
    lengths = {key: _length(value) for key, value in inputs.items()}
    if len(set(lengths.values())) > 1:
        raise ConfigurationError(f"the values of the dictionary differ in length: {lengths}. Give all one length.")
    return next(iter(lengths.values()), 0)


def _cut(inputs: Any, start: int, stop: int, more: int) -> Any:
    if isinstance(inputs, Mapping):
        return {key: _cut(value, start, stop, more) for key, value in inputs.items()}
    chosen = [*range(start, stop), *[len(inputs) - 1] * more]
    if isinstance(inputs, Dataset):  # a slice of one is an error, or something else: a tuple of tensors
        return Subset(inputs, chosen)
    if hasattr(inputs, "select") and not isinstance(inputs, torch.Tensor):  # datasets.Dataset
        return inputs.select(chosen)
    own = inputs[start:stop]
    if not more:
        return own
    if isinstance(inputs, torch.Tensor) or hasattr(inputs, "__array_interface__"):  # of which + would be a sum
        return inputs[chosen]
    if isinstance(inputs, range):
        return [inputs[index] for index in chosen]
    if isinstance(own, (list, tuple, str, bytes)):
        return own + inputs[-1:] * more
    raise TypeError(
        f"split_between_processes(apply_padding=True) cannot repeat the last element of a {type(inputs).__name__}. "
        "Pass a list, tuple, tensor or array, or leave apply_padding out."
    )
