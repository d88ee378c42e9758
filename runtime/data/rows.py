"""Rows of a batch that is already collated, for loaders whose inside is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from runtime.data.plan import Share, share_of
from runtime.split import part
from runtime.tree import leaves, map_leaves


def row_count(batch: Any) -> int | None:
    """The number of rows; None unless everything in the batch is a tensor and all agree on the first dimension.

    Of what is sparse PyTorch takes no rows.
    """
    sizes = {leaf.shape[0] if _has_rows(leaf) else None for leaf in leaves(batch)}
    return sizes.pop() if len(sizes) == 1 else None


def _has_rows(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.ndim > 0 and leaf.layout is torch.strided


def cut_up(batch: Any, ranks: Iterable[int], world: int) -> tuple[list[Any], Share]:
    """The parts of some ranks, and the share of all `world`; the first row where a rank is left without one.

    Where rows cannot be told apart every rank takes the whole batch, and it counts on rank 0.
    """
    count = row_count(batch)
    if count is None:
        return [batch for _ in ranks], Share((1,) * world, (1, *(0,) * (world - 1)), is_one_batch=True)
    return [_own(batch, *part(count, rank, world)) for rank in ranks], share_of(count, world)


def _own(batch: Any, start: int, stop: int) -> Any:
    if stop == start:
        start, stop = 0, 1
    return map_leaves(lambda tensor: tensor[start:stop], batch)
