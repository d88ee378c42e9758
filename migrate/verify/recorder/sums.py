"""What is written down of tensors: checksums that show one changed bit, sizes that bear another order of sums."""

from __future__ import annotations

import ctypes
import math
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import torch

DEEPEST = 4  # levels of containers in a batch that are looked into
PROJECTED = 1 << 20  # numbers of a tensor that its projection is made of


def parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """What an optimizer steps, in its own order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def content(tensor: torch.Tensor) -> memoryview:
    """The bytes of a tensor, without a copy where it lies in one piece in the memory of this process."""
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    plain = plain.resolve_conj().resolve_neg().cpu().contiguous()
    count = plain.numel() * plain.element_size()
    if count == 0:
        return memoryview(b"")
    # A copy of a slice would do, but not for models that fill the memory.
    view = memoryview((ctypes.c_char * count).from_address(plain.data_ptr())).cast("B")
    return view if plain.data_ptr() == tensor.data_ptr() else memoryview(bytes(view))


def checksum(tensors: Iterable[torch.Tensor]) -> int:
    """One number for all bits of all tensors."""
    result = 0
    for tensor in tensors:
        result = zlib.crc32(content(tensor), result)
    return result


def norm(tensors: Iterable[torch.Tensor]) -> float:
    """The length of all as one vector, added up in double precision."""
    return math.sqrt(sum(float(t.detach().double().square().sum()) for t in tensors))


def projection(tensors: Sequence[torch.Tensor]) -> float:
    """Along one fixed direction: two gradients of one length that point elsewhere differ in it."""
    result = 0.0
    for number, tensor in enumerate(tensors):
        flat = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()
        flat = flat.reshape(-1)[:PROJECTED].double()
        places = torch.arange(flat.numel(), dtype=torch.float64, device=flat.device)
        result += float((flat * (places * 0.7390851 + number).sin()).sum())
    return result


def finite(value: float) -> float | str:
    """As JSON has it: text for what is not a number there."""
    return value if math.isfinite(value) else str(value)


def rows(batch: Any) -> tuple[int, list[int], int]:
    """How many samples a batch holds, a checksum of each, and the bytes of one.

    There are no checksums where it holds no tensors of that length.
    """
    tensors = [tensor for tensor in _tensors(batch, DEEPEST) if tensor.dim() > 0]
    if not tensors:
        return (len(batch) if isinstance(batch, list | tuple) else 0), [], 0
    count = tensors[0].shape[0]
    sums, size = [0] * count, 0
    for tensor in tensors:
        if tensor.shape[0] != count:
            continue
        view = content(tensor)
        width = len(view) // count if count else 0
        size += width
        for row in range(count):
            sums[row] = zlib.crc32(view[row * width : (row + 1) * width], sums[row])
    return count, sums, size


def _tensors(value: Any, depth: int) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if depth == 0 or value is None or isinstance(value, str | bytes | int | float):
        return []
    if isinstance(value, dict):
        items: Iterable[Any] = value.values()
    elif isinstance(value, list | tuple):
        items = value
    else:
        items = getattr(value, "__dict__", {}).values()
    return [tensor for item in items for tensor in _tensors(item, depth - 1)]
