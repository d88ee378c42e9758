"""Rows of a batch that is already collated, for loaders whose inside is not known."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from runtime.tree import leaves, map_leaves


def row_count(batch: Any) -> int | None:
    """The number of rows; None unless everything in the batch is a tensor and all agree on the first dimension."""
    sizes = {leaf.shape[0] if isinstance(leaf, Tensor) and leaf.ndim else None for leaf in leaves(batch)}
    return sizes.pop() if len(sizes) == 1 else None


def rows_of(batch: Any, start: int, stop: int) -> Any:
    """The rows from `start` to `stop` of every tensor."""
    return map_leaves(lambda tensor: tensor[start:stop], batch)
