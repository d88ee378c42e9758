"""Feeds whose batches cannot be planned by index: every rank reads what there is, in one order, and keeps its share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, cast

from torch.utils.data import DataLoader

from runtime.data.draws import Draws
from runtime.data.feeds import Dealing, Feed, Steps, one, settings_of
from runtime.data.passes import Purpose
from runtime.data.plan import Share, deal_whole, own_rows, share_of, whole_batch
from runtime.data.rows import cut_up, row_count
from runtime.data.unison import Unison, warn_if_apart
from runtime.world import World

Collate = Callable[[Any], Any]


class Read(Feed):
    """What every rank reads from start to end."""

    def __init__(self, base: DataLoader[Any], world: World, dealing: Dealing) -> None:
        super().__init__(base, world, dealing)
        self._draws = Draws(base, with_others=True)
        self._is_compared = False

    def _items(self, loader: DataLoader[Any], *, are_own: bool = False) -> Iterator[Any]:
        """The same on every rank, but for those that hold the rank's own rows only."""
        items = Unison(self._draws, self.world, lambda: iter(loader))
        return items if are_own or self._is_compared else self._compared(items)

    def _compared(self, items: Iterator[Any]) -> Iterator[Any]:
        """The same, after a look at the first of them: once."""
        first = list(islice(items, 1))
        self._is_compared = True
        warn_if_apart(self.world, first, type(self.base.dataset).__name__)
        yield from first
        yield from items


class Stream(Read):
    """An iterable data set."""

    def __init__(self, base: DataLoader[Any], world: World, dealing: Dealing) -> None:
        super().__init__(base, world, dealing)
        self._inner: dict[bool, DataLoader[Any]] = {}

    def shares_out(self, purpose: Purpose) -> bool:
        return purpose is Purpose.WHOLE or (self.base.batch_size is not None and super().shares_out(purpose))

    def open(self, purpose: Purpose, since: int = 0) -> Steps:
        rank, world, even = self.world.rank, self.world.size, self.evens_out(purpose)
        if purpose is Purpose.WHOLE:
            return _whole(_after(self._items(self.base), since, 0)[0], self.world)
        if self.base.batch_size is None:
            samples, skip = _after(self._items(self.base), since, world)
            return deal_whole(samples, rank, world, even=even, count=one, skip=skip)
        return self._cut(since) if self.shares_out(purpose) else self._dealt(since)

    @property
    def _collates_late(self) -> bool:
        """Whether batches are collated by the process that has them, and not by workers, which cannot know it.

        What is drawn then is drawn by that process alone, which is not to change what all of them read.
        """
        return not self.base.num_workers and not self.base.pin_memory

    def _cut(self, since: int) -> Steps:
        rank, world = self.world.rank, self.world.size
        is_late, collate = self._collates_late, cast("Collate", self.base.collate_fn)
        loader = self._loader(_CollateRows(_as_they_are) if is_late else _CollateRows(collate, rank, world))
        batches, _ = _after(self._items(loader, are_own=not is_late), since, 0)
        if is_late:
            return ((collate(own_rows(samples, rank, world)), share_of(count, world)) for count, samples in batches)
        return ((batch, share_of(count, world)) for count, batch in batches)

    def _dealt(self, since: int) -> Steps:
        is_late, collate = self._collates_late, self.base.collate_fn
        batches, skip = _after(
            self._items(self._loader(_CollateRows(_as_they_are if is_late else collate))), since, self.world.size
        )
        dealt = deal_whole(
            batches,
            self.world.rank,
            self.world.size,
            even=self.dealing.even,
            drop_last=self.drops_last,
            count=lambda counted: int(counted[0]),
            skip=skip,
        )
        return ((collate(batch) if is_late else batch, share) for (_, batch), share in dealt)

    def _loader(self, collate: _CollateRows) -> DataLoader[Any]:
        """The loader with what collates its batches; workers that persist are those of one that cuts, or deals."""
        base, cuts = self.base, collate.world > 1
        if cuts not in self._inner:
            settings = {**settings_of(base), "batch_size": base.batch_size, "drop_last": base.drop_last}
            self._inner[cuts] = DataLoader(base.dataset, **settings)
        self._inner[cuts].collate_fn = collate  # a script may have given the loader another one
        return self._inner[cuts]


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
    """Collates a batch, or one rank's rows of it, and says how many rows the batch has. Workers pickle it."""

    collate: Collate
    rank: int = 0
    world: int = 1

    def __call__(self, samples: list[Any]) -> tuple[int, Any]:
        return len(samples), self.collate(own_rows(samples, self.rank, self.world))


class Opaque(Read):
    """A loader with an `__iter__` of its own; its batches can only be looked at from outside."""

    def open(self, purpose: Purpose, since: int = 0) -> Steps:
        is_cut = self.shares_out(purpose)
        batches, skip = _after(self._items(self.base), since, 0 if is_cut else self.world.size)
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
