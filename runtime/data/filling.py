"""Batches of one size: a short one is filled up with copies of its last row, which do not count.

What is compiled for a shape (by XLA, by torch.compile) is then compiled once. Rows are copied after they were collated
and before they are moved: nothing is read twice, no random number is drawn for them, and the device sees one shape.
`Share` says which rows count, so `gather_for_metrics` and the weights of losses know of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor

from runtime.data.feeds import Feed, Local, Steps
from runtime.data.passes import Purpose
from runtime.data.plan import Share
from runtime.errors import ConfigurationError
from runtime.tree import leaves, map_leaves


class Filling:
    """Fills up the batches of one loader.

    Raises:
        ConfigurationError: its batches have no fixed size, or what the other processes hold is not known.
    """

    def __init__(self, feed: Feed) -> None:
        if feed.batch_size is None:
            raise ConfigurationError(
                f"pad_batches=True, and the batches of this {type(feed.base).__name__} have no fixed size: it has no "
                "batch_size, nor has its batch sampler. Give the batch sampler that attribute, or leave the option out."
            )
        if feed.world.size > 1 and isinstance(feed, Local):
            raise ConfigurationError(
                "pad_batches=True, and this loader's sampler or data set shares data out by itself: which rows of the "
                "other processes count is not known. Leave sharing out to prepare(): drop the sampler."
            )
        self._feed = feed
        self._batch_size = feed.batch_size
        self._filled: dict[tuple[Share, int], Share] = {}

    def rows(self, purpose: Purpose) -> int:
        """The rows of every batch of this process in a pass."""
        is_cut = self._feed.shares_out(purpose) and purpose is not Purpose.WHOLE
        parts = self._feed.world.size if is_cut else 1
        return -(-self._batch_size // parts)

    def through(self, steps: Steps, purpose: Purpose, since: int) -> Steps:
        """The steps of a pass from a place on, with their batches filled up."""
        size = self.rows(purpose)
        planned = chain(self._planned(since), repeat(None))
        return (self._full(batch, share, rows, size) for (batch, share), rows in zip(steps, planned, strict=False))

    def _planned(self, since: int) -> Iterator[int]:
        """The rows of each step of a loader that one process reads as it is, where its order tells."""
        total, size = self._feed.total, self._batch_size
        if self._feed.sampler is None or total is None:
            return iter(())
        return (min(size, total - place) for place in range(since, total, size))

    def _full(self, batch: Any, share: Share | None, planned: int | None, size: int) -> tuple[Any, Share]:
        known = planned if share is None else share.rows[self._feed.world.rank]
        rows = _rows(batch, known, size)
        share = share or Share((rows,), (rows,), is_one_batch=True)
        if (share, size) not in self._filled:
            self._filled[share, size] = _with_rows(share, size)
        filled = self._filled[share, size]
        return batch if rows == size else map_leaves(lambda leaf: _filled_up(leaf, rows, size), batch), filled


def row_mask(share: Share, rank: int, device: torch.device) -> Tensor:
    """Which rows of this process count: (rows,), bool; they come first."""
    return (torch.arange(share.rows[rank]) < share.valid[rank]).to(device)


def _rows(batch: Any, known: int | None, size: int) -> int:
    """The rows of a batch, which are these where they are known.

    Raises:
        ConfigurationError: its tensors do not have them, or they are more than there should be.
    """
    found = {leaf.shape[0] for leaf in leaves(batch) if isinstance(leaf, Tensor) and leaf.ndim}
    if known is None and len(found) == 1:
        (known,) = found
    if known is None or known not in found or not 0 < known <= size:
        has = f"tensors of {', '.join(map(str, sorted(found)))} rows" if found else "no tensors with rows"
        should = f"{known or size} rows" if known is None or known <= size else f"{size} rows at most"
        raise ConfigurationError(
            f"pad_batches=True, and a batch that should have {should} has {has}: where to fill it up is not known. "
            "Have collate_fn give one row for each sample, and the loader a batch_size that is so, or leave it out."
        )
    return known


def _filled_up(leaf: Any, rows: int, size: int) -> Any:
    if not isinstance(leaf, Tensor) or not leaf.ndim or leaf.shape[0] != rows:
        return leaf
    return torch.cat([leaf, leaf[-1:].expand(size - rows, *leaf.shape[1:])])


def _with_rows(share: Share, size: int) -> Share:
    """The share where every process that has a batch has `size` rows; losses weigh by those that count."""
    if all(rows == valid == size for rows, valid in zip(share.rows, share.valid, strict=True)):
        return share
    all_have_one = all(share.rows)  # else some are done, and those that are not average among themselves
    return Share(
        tuple(size if rows else 0 for rows in share.rows), share.valid, is_one_batch=share.is_one_batch or all_have_one
    )
