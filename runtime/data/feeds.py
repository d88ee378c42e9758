"""Where the batches of a prepared loader come from: one class for each kind of loader, chosen once.

    Local     one process, or a loader that shares its data out by itself: the loader as it is
    Planned   a map-style data set: a loader around planned indices, so that only the own samples are read
    Stream    an iterable data set: every rank reads the stream; samples are picked before they are collated
    Opaque    a subclass with its own `__iter__`: every rank iterates it and keeps its share of the batches
    Dispatch  any loader, where asked for: rank 0 iterates it and sends every other rank its share

Every feed answers how many steps a pass has and opens one, also from the middle. Opening starts the loader's iterator
at once, as `iter` on the plain loader does, because that is when it draws its seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, IterableDataset, SequentialSampler

from runtime.data.order import agreed, agreed_pieces, known_sampler
from runtime.data.passes import Purpose
from runtime.data.plan import (
    Share,
    deal_pieces,
    deal_rows,
    deal_whole,
    dealt_steps,
    named,
    share_out,
    share_pieces,
    whole_batch,
)
from runtime.data.workers import OwnSeed
from runtime.world import World

Steps = Iterator[tuple[Any, Share | None]]

LARGE = 1 << 16  # samples, from which on a list of all indices costs more than doing without


@dataclass(frozen=True, slots=True)
class Dealing:
    """How training batches are divided: cut (`split`), or dealt with the last round completed (`even`).

    With `dispatch` one process reads all of them, with `fill` short ones are filled up.
    """

    split: bool = False
    even: bool = True
    dispatch: bool = False
    fill: bool = False


class Feed:
    """The batches of one loader, for this rank.

    A place in an epoch is how much of the original loader's order lies before it: samples where batches are cut from an
    order of samples that is known, else batches. So it means the same at any number of processes.
    """

    def __init__(self, base: DataLoader[Any], world: World, dealing: Dealing) -> None:
        self.base = self.read = base  # as it was given, and what is iterated
        self.world = world
        self.dealing = dealing
        self.sampler = None if has_own_iteration(base) else known_sampler(base)

    @property
    def unit(self) -> int:
        """What one batch of the original loader adds to a place."""
        if self.sampler is None or self.base.batch_sampler is None:
            return 1
        return int(self.base.batch_sampler.batch_size)  # type: ignore[attr-defined]  # cut from a known sampler

    @property
    def batch_size(self) -> int | None:
        """The samples of a batch of the original loader; None where batches have no fixed size."""
        size = getattr(self.base.batch_sampler, "batch_size", None) or self.base.batch_size
        return None if size is None else int(size)

    @property
    def total(self) -> int | None:
        """The place at the end of an epoch; None if the loader has no length."""
        try:
            return len(self.base if self.sampler is None else self.sampler)
        except TypeError:
            return None

    def place(self, purpose: Purpose, steps: int, since: int = 0) -> int:
        """The place that this many steps lead to."""
        if steps == 0:
            return since
        at, total = since + steps * self.unit * (1 if self.shares_out(purpose) else self.world.size), self.total
        return at if total is None else min(at, total)

    def steps(self, purpose: Purpose, since: int = 0) -> int | None:
        """The number of steps of a pass from a place on; None if the loader has no length."""
        batches = self._batches(since)
        if batches is None or self.shares_out(purpose):
            return batches
        return dealt_steps(
            batches, self.world.size, drop_last=self.drops_last, even=self.evens_out(purpose), rank=self.world.rank
        )

    def _batches(self, since: int) -> int | None:
        total = self.total
        if total is None:
            return None
        left = max(total - since, 0)
        return left // self.unit if self.drops_last else -(-left // self.unit)

    @property
    def shuffles(self) -> bool:
        """Whether the order is known to be drawn."""
        return self.sampler is not None and not isinstance(self.sampler, SequentialSampler)

    @property
    def drops_last(self) -> bool:
        """Whether incomplete batches are left out, and so incomplete rounds of batches in training."""
        return bool(getattr(self.base.batch_sampler, "drop_last", self.base.drop_last))

    def shares_out(self, purpose: Purpose) -> bool:
        """Whether every batch is cut into parts, one per rank."""
        return purpose is not Purpose.TRAINING or self.dealing.split

    def evens_out(self, purpose: Purpose) -> bool:
        """Whether the last round is completed where batches are dealt: always in an evaluation, which gathers."""
        return self.dealing.even or purpose is not Purpose.TRAINING

    def original(self) -> Iterator[Any]:
        """The iterator of the loader as it is."""
        return iter(self.base)

    def counts(self, since: int) -> list[int | None]:
        """The training steps of every process from a place on; one number where they take the same."""
        batches = self._batches(since)
        if batches is None or self.dealing.even or self.shares_out(Purpose.TRAINING):
            return [self.steps(Purpose.TRAINING, since)]
        size, drop_last = self.world.size, self.drops_last
        return [dealt_steps(batches, size, drop_last=drop_last, even=False, rank=rank) for rank in range(size)]

    def open(self, purpose: Purpose, since: int = 0) -> Steps:
        """The batches of a pass from a place on, each with its share."""
        raise NotImplementedError

    @property
    def starts_workers(self) -> bool:
        """Whether opening a pass draws the seed of the workers, which comes before that of the order."""
        return not self.read.persistent_workers or self.read._iterator is None  # noqa: SLF001  no public name

    @contextmanager
    def as_if(self, starts_workers: bool) -> Iterator[None]:
        """A context in which opening a pass draws the random numbers that it draws with (or without) new workers."""
        settings = vars(self.read)
        own = settings["generator"]
        if starts_workers and not self.starts_workers:
            torch.empty((), dtype=torch.int64).random_(generator=own)
        elif self.starts_workers and not starts_workers:
            settings["generator"] = torch.Generator()  # a seed that is not drawn from the epoch's
        try:
            yield
        finally:
            settings["generator"] = own


class Local(Feed):
    """The loader as it is."""

    def shares_out(self, purpose: Purpose) -> bool:
        return True  # every batch is a step

    def counts(self, since: int) -> list[int | None]:
        own = self.steps(Purpose.TRAINING, since)
        inside = (self.base.sampler, getattr(self.base.batch_sampler, "sampler", None))
        if self.world.size == 1 or any(isinstance(part, DistributedSampler) for part in inside):
            return [own]
        from runtime.collectives import all_objects  # one process does without
        from runtime.messages import BEGINNING

        return all_objects(self.world, own, call=BEGINNING)

    def open(self, purpose: Purpose, since: int = 0) -> Steps:
        batches = self._from(since) if since else self.original()
        return ((batch, None) for batch in batches)

    def original(self) -> Iterator[Any]:
        """Of a large data set it takes the indices from tensors instead of lists."""
        if self.sampler is None or self.world.size > 1 or self.total is None or self.total < LARGE:
            return iter(self.base)
        return iter(like(self.base, **{self._part: _Original(self)}))

    @property
    def _part(self) -> str:
        return "sampler" if self.base.batch_sampler is None else "batch_sampler"

    def _from(self, since: int) -> Iterator[Any]:
        base = self.base
        if has_own_iteration(base) or isinstance(base.dataset, IterableDataset):
            batches = iter(base)
            for _ in islice(batches, since):
                pass
            return batches
        indices = Started(self.indices(since))
        batches = iter(like(base, **{self._part: indices}))
        indices.start()
        return batches

    def indices(self, since: int) -> Iterator[Any]:
        """What the loader's own sampler would hand out from a place on."""
        base, sampler = self.base, self.sampler
        if sampler is None:
            return islice(iter(base.sampler if base.batch_sampler is None else base.batch_sampler), since, None)
        pieces = agreed_pieces(sampler, World())
        batches = share_pieces(pieces, 0, 1, size=self.unit, drop_last=self.drops_last, skip=since)
        return (indices for indices, _ in named(batches, sampler, is_single=base.batch_sampler is None))


class _Original:
    """The batches of indices that a loader's own sampler hands out, without a list of all of them."""

    def __init__(self, feed: Local) -> None:
        self._feed = feed

    def __iter__(self) -> Iterator[Any]:
        return self._feed.indices(0)

    def __len__(self) -> int:
        return len(self._feed.base)


class Planned(Feed):
    """A loader of the same data set around the indices that the plan gives to this rank."""

    def __init__(self, base: DataLoader[Any], world: World, dealing: Dealing) -> None:
        super().__init__(base, world, dealing)
        self._indices = _Indices(self)
        settings = settings_of(base)
        if base.num_workers:
            settings["worker_init_fn"] = OwnSeed(world.rank, base.worker_init_fn)
        if base.batch_sampler is None:
            settings |= {"sampler": self._indices, "batch_size": None}
        else:
            settings |= {"batch_sampler": self._indices}
        self.read = DataLoader(base.dataset, **settings)

    def shares_out(self, purpose: Purpose) -> bool:
        is_cut = self.base.batch_sampler is not None and super().shares_out(purpose)  # a single sample cannot be cut
        return is_cut or purpose is Purpose.WHOLE

    def plan(self, purpose: Purpose, since: int = 0) -> Iterator[tuple[Any, Share]]:
        """The own indices of every step."""
        if purpose is Purpose.WHOLE:
            return self._whole(since)
        if self.sampler is not None:
            return named(self._known(purpose, since), self.sampler, is_single=self.base.batch_sampler is None)
        rank, world, even, batches = self.world.rank, self.world.size, self.evens_out(purpose), self.base.batch_sampler
        told = agreed(self.base.sampler if batches is None else batches, self.world)
        if self.shares_out(purpose):
            return share_out(islice(told, since, None), rank, world)
        if batches is None:
            return deal_whole(told, rank, world, even=even, count=one, skip=since)
        if type(batches) is BatchSampler:
            size = batches.batch_size
            return deal_rows(told, rank, world, size=size, even=even, drop_last=self.drops_last, skip=since)
        return deal_whole(told, rank, world, even=even, drop_last=self.drops_last, skip=since)

    def _whole(self, since: int) -> Iterator[tuple[Any, Share]]:
        """All indices of every step."""
        is_single = self.base.batch_sampler is None
        if self.sampler is not None:
            pieces, size, drop_last = agreed_pieces(self.sampler, self.world), self.unit, self.drops_last
            batches = share_pieces(pieces, 0, 1, size=size, drop_last=drop_last, skip=since)
            told: Iterator[Any] = (indices for indices, _ in named(batches, self.sampler, is_single=is_single))
        else:
            source = self.base.sampler if self.base.batch_sampler is None else self.base.batch_sampler
            told = islice(agreed(source, self.world), since, None)
        return ((each, whole_batch(1 if is_single else len(each), self.world.size)) for each in told)

    def _known(self, purpose: Purpose, since: int) -> Iterator[tuple[Any, Share]]:
        rank, world, even, drop_last = self.world.rank, self.world.size, self.evens_out(purpose), self.drops_last
        pieces = agreed_pieces(self.sampler, self.world)
        if self.shares_out(purpose):
            return share_pieces(pieces, rank, world, size=self.unit, drop_last=drop_last, skip=since)
        return deal_pieces(pieces, rank, world, size=self.unit, even=even, drop_last=drop_last, skip=since)

    def open(self, purpose: Purpose, since: int = 0) -> Steps:
        shares = self._indices.prepare(purpose, since)
        self.read.collate_fn = self.base.collate_fn  # a script may have given it another one
        batches = iter(self.read)
        self._indices.start()
        return ((batch, shares.popleft()) for batch in batches)


class _Indices:
    """The sampler of the inner loader: notes the share of each step beside handing out its indices.

    Workers are told indices ahead of time, so the shares wait in a queue; it belongs to one pass, also when a loader is
    iterated inside itself.
    """

    def __init__(self, feed: Planned) -> None:
        self._feed = feed
        self._purpose = Purpose.TRAINING
        self._since = 0
        self._shares: deque[Share] = deque()
        self._started: Started | None = None

    def prepare(self, purpose: Purpose, since: int) -> deque[Share]:
        self._purpose, self._since, self._shares = purpose, since, deque()
        return self._shares

    def __iter__(self) -> Iterator[Any]:
        indices = self._handed_out(self._feed.plan(self._purpose, self._since), self._shares)
        if not self._since:
            return indices
        self._started = Started(indices)
        return self._started

    def start(self) -> None:
        """Take the first indices of a pass that begins in the middle of an epoch."""
        if self._started is not None:
            self._started.start()
            self._started = None

    @staticmethod
    def _handed_out(plan: Iterator[tuple[Any, Share]], shares: deque[Share]) -> Iterator[Any]:
        for indices, share in plan:
            shares.append(share)
            yield indices


class Started:
    """An iterator of indices whose first can be taken early: the random numbers of the order are drawn then."""

    __slots__ = ("_first", "_indices", "_is_started")

    def __init__(self, indices: Iterator[Any]) -> None:
        self._indices = indices
        self._first: list[Any] = []
        self._is_started = False

    def start(self) -> None:
        """Take the first, unless workers have been told of it already."""
        if not self._is_started:
            self._is_started = True
            self._first = list(islice(self._indices, 1))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._is_started = True
        return self._first.pop() if self._first else next(self._indices)


def one(sample: Any) -> int:
    """The rows of a single sample."""
    return 1


def has_own_iteration(loader: DataLoader[Any]) -> bool:
    """Whether the loader's class says itself how it is iterated."""
    return type(loader).__iter__ is not DataLoader.__iter__


def like(base: DataLoader[Any], **changed: Any) -> DataLoader[Any]:
    """The same loader with other attributes, for one pass."""
    view: DataLoader[Any] = object.__new__(type(base))
    vars(view).update(vars(base), _iterator=None, **changed)  # a loader does not let these be set once it is made
    return view


def settings_of(base: DataLoader[Any]) -> dict[str, Any]:
    """The arguments of a loader that do not say which samples it reads, and that are not at their default."""
    settings: dict[str, Any] = {"collate_fn": base.collate_fn}
    for name, default in (
        ("num_workers", 0),
        ("pin_memory", False),
        ("timeout", 0),
        ("worker_init_fn", None),
        ("multiprocessing_context", None),
        ("generator", None),
        ("prefetch_factor", None),
        ("persistent_workers", False),
        ("pin_memory_device", ""),
    ):
        if getattr(base, name) != default:
            settings[name] = getattr(base, name)
    return settings  # not in_order=False: ranks must take the same batches at the same time
