"""The passes over loaders: how many samples each batch holds, and which."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils import fetch

from migrate.verify.order import Order
from migrate.verify.recorder.chance import standing
from migrate.verify.recorder.journal import Journal
from migrate.verify.recorder.sums import rows


class Passes:
    """The observer of loaders."""

    def __init__(self, journal: Journal, order: Order, batch_came: Callable[[], None]) -> None:
        self._journal = journal
        self._order = order
        self._batch_came = batch_came
        self._is_inside = False
        self._indices: list[Any] = []
        self._draws = False  # the data set drew random numbers for this batch
        self._shuffled = dict(order.shuffled)

    def watch(self) -> None:
        """From now on: every loader, and which samples are fetched in this process."""
        self.cover(DataLoader)
        kind: Any = fetch._MapDatasetFetcher  # noqa: SLF001 - there is no public place that sees the indices
        run, indices, passes = kind.fetch, self._indices, self

        def fetched(self: Any, possibly_batched_index: Any) -> Any:
            several = isinstance(possibly_batched_index, list | tuple)
            indices.extend(possibly_batched_index if several else [possibly_batched_index])
            before = standing()
            batch = run(self, possibly_batched_index)
            passes._draws = passes._draws or standing() != before
            return batch

        kind.fetch = fetched
        if self._order.is_frozen:
            self._load_here()

    def cover(self, kind: Any) -> None:
        """Write down the passes of a class of loaders; those that a pass makes itself are a part of it."""
        run, passes = kind.__iter__, self

        def __iter__(loader: Any) -> Any:  # noqa: N807
            if passes._is_inside:
                return run(loader)
            return Recorded(passes, loader, run)

        kind.__iter__ = __iter__

    def _load_here(self) -> None:
        """Workers would have seeds of their own in each process."""
        kind: Any = DataLoader
        run = kind.__init__

        def __init__(loader: Any, *arguments: Any, **options: Any) -> None:  # noqa: N807
            some = list(arguments)
            if len(some) > 5:  # num_workers is the sixth after self
                some[5] = 0
            elif "num_workers" in options:
                options["num_workers"] = 0
            for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context"):
                options.pop(name, None)
            run(loader, *some, **options)

        kind.__init__ = __init__

    # --- one pass ---------------------------------------------------------------------------------------------------

    def begin(self) -> int:
        """The number of a new pass."""
        number = self._journal.passes
        self._journal.passes += 1
        if self._order.is_frozen:
            _seed(self._order.seed + number)
        return number

    def within(self, work: Callable[[], Any]) -> Any:
        """The result of what a loader does itself."""
        was, self._is_inside = self._is_inside, True
        try:
            return work()
        finally:
            self._is_inside = was

    def next(self, recorded: Recorded) -> Any:
        """The next batch, written down."""
        if self._order.per_pass and self._journal.steps - recorded.since >= self._order.per_pass:
            recorded.drop()
            raise StopIteration
        if recorded.count == 0 and recorded.number in self._shuffled:
            self.within(lambda: recorded.shuffle(self._shuffled[recorded.number]))
        self._indices.clear()
        self._draws = False
        batch = self.within(recorded.take)
        count, sums, width = rows(batch)
        self._journal.last_pass = recorded.number
        indices = [int(i) for i in self._indices] if all(_is_whole(i) for i in self._indices) else []
        self._journal.write(
            "batch",
            passes=recorded.number,
            number=recorded.count,
            rows=count,
            sums=sums,
            indices=indices,
            width=width,
            draws=self._draws,
        )
        recorded.count += 1
        self._batch_came()
        return batch


class Recorded:
    """An iterator over a loader that is written down, and otherwise the one that it covers."""

    def __init__(self, passes: Passes, loader: Any, run: Callable[[Any], Any]) -> None:
        self._passes = passes
        self.number = passes.begin()
        self._covered = passes.within(lambda: run(loader))
        self.count = 0
        self.since = passes._journal.steps  # noqa: SLF001

    def __iter__(self) -> Recorded:
        return self

    def __next__(self) -> Any:
        return self._passes.next(self)

    def take(self) -> Any:
        """The next batch."""
        return next(self._covered)

    def shuffle(self, count: int) -> None:
        """Go on with other batches than the `count` first ones, and with another one in the end."""
        taken = list(itertools.islice(self._covered, count + 1))
        self.drop()
        self._covered = iter(list(reversed(taken[1:] if len(taken) > count else taken[:-1])))

    def drop(self) -> None:
        """The pass is over, though not all was taken."""
        close = getattr(self._covered, "close", None)
        if close is not None:
            close()
        self._covered = iter(())

    def __len__(self) -> int:
        return len(self._covered)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._covered, name)


def _is_whole(index: Any) -> bool:
    return isinstance(index, int) or getattr(index, "ndim", None) == 0


def _seed(value: int) -> None:
    random.seed(value)
    torch.manual_seed(value)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(value)
