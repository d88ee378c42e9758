"""Feeds whose batches cannot be planned by index: every rank reads what there is and keeps its share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from torch.utils.data import DataLoader

from runtime.data.feeds import Dealing, Feed, Steps, one, settings_of
from runtime.data.passes import Purpose
from runtime.data.plan import Share, deal_whole, own_rows, share_of, whole_batch
from runtime.data.rows import cut_up, row_count
from runtime.world import World


class Stream(Feed):
    """An iterable data set, which every rank reads from start to end."""

    def __init__(self, base: DataLoader[Any], world: World, dealing: Dealing) -> None:
        super().__init__(base, world, dealing)
        self._inner: dict[bool, DataLoader[Any]] = {}

    def shares_out(self, purpose: Purpose) -> bool:
        return purpose is Purpose.WHOLE or (self.base.batch_size is not None and super().shares_out(purpose))

    def open(self, purpose: Purpose, since: int = 0) -> Steps:
        rank, world, even = self.world.rank, self.world.size, self.dealing.even
        if purpose is Purpose.WHOLE:
            return _whole(_after(iter(self.base), since, 0)[0], self.world)
        if self.base.batch_size is None:
            samples, skip = _after(iter(self.base), since, world)
            return deal_whole(samples, rank, world, even=even, count=one, skip=skip)
        cut = self.shares_out(purpose)
        if cut not in self._inner:
            self._inner[cut] = self._loader()
        self._inner[cut].collate_fn = self._collating(cut)  # a script may have given the loader another one
        batches, skip = _after(iter(self._inner[cut]), since, 0 if cut else world)
        if cut:
            return ((batch, share_of(count, world)) for count, batch in batches)
        return self._dealt(batches, skip)

    @property
    def _collates_late(self) -> bool:
        """Whether dealt batches are collated by the process that has them, and not by workers, which cannot know it."""
        return not self.base.num_workers and not self.base.pin_memory

    def _dealt(self, batches: Iterator[Any], skip: int) -> Steps:
        dealt = deal_whole(
            batches,
            self.world.rank,
            self.world.size,
            even=self.dealing.even,
            drop_last=self.drops_last,
            count=lambda counted: int(counted[0]),
            skip=skip,
        )
        if self._collates_late:
            return ((self.base.collate_fn(samples), share) for (_, samples), share in dealt)
        return ((batch, share) for (_, batch), share in dealt)

    def _collating(self, cut: bool) -> _CollateRows:
        collate = _as_they_are if not cut and self._collates_late else self.base.collate_fn
        return _CollateRows(collate, *((self.world.rank, self.world.size) if cut else (0, 1)))

    def _loader(self) -> DataLoader[Any]:
        base = self.base
        return DataLoader(base.dataset, batch_size=base.batch_size, drop_last=base.drop_last, **settings_of(base))


def _after(items: Iterator[Any], since: int, keep: int) -> tuple[Iterator[Any], int]:
    """The items from a place on, preceded by the first `keep` of the epoch, and how many precede them.

    These are fewer than `keep` where fewer lie before the place. What is left out in between is read at once: the
    program's own code may draw its order with the first item, and the generators stand where the epoch began only while
    the pass is opened.
    """
    first = list(islice(items, min(keep, since)))
    for _ in islice(items, since - len(first)):
        pass
    return chain(first, items), len(first)


def _whole(batches: Iterator[Any], world: World) -> Steps:
    return ((batch, whole_batch(row_count(batch) or 1, world.size)) for batch in batches)


def _as_they_are(samples: Any) -> Any:
    return samples


@dataclass(frozen=True, slots=True)
class _CollateRows:
    """Collates one rank's rows of a batch, and says how many rows the batch has. Workers pickle it."""

    collate: Callable[[Any], Any]
    rank: int
    world: int

    def __call__(self, samples: list[Any]) -> tuple[int, Any]:
        return len(samples), self.collate(own_rows(samples, self.rank, self.world))


class Opaque(Feed):
    """A loader with an `__iter__` of its own; its batches can only be looked at from outside."""

    def open(self, purpose: Purpose, since: int = 0) -> Steps:
        is_cut = self.shares_out(purpose)
        batches, skip = _after(iter(self.base), since, 0 if is_cut else self.world.size)
        if purpose is Purpose.WHOLE:
            return _whole(batches, self.world)
        if is_cut:
            return (self._cut(batch) for batch in batches)
        return deal_whole(
            batches,
            self.world.rank,
            self.world.size,
            even=self.dealing.even,
            drop_last=self.drops_last,
            count=lambda batch: row_count(batch) or 1,
            skip=skip,
        )

    def _cut(self, batch: Any) -> tuple[Any, Share]:
        (own,), share = cut_up(batch, (self.world.rank,), self.world.size)
        return own, share
