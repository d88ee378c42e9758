"""Where the batches of a prepared loader come from: one class for each kind of loader, chosen once.

    Local     one process, or a loader that shares its data out by itself: the loader as it is
    Planned   a map-style data set: a loader around planned indices, so that only the own samples are read
    Stream    an iterable data set: every rank reads the stream; samples are picked before they are collated
    Opaque    a subclass with its own `__iter__`: every rank iterates it and keeps its share of the batches

Every feed answers how many steps a pass has and opens one. Opening starts the loader's iterator at once, as `iter` on
the plain loader does, because that is when it draws its seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, IterableDataset

from runtime.data.order import agreed
from runtime.data.passes import Kind
from runtime.data.plan import Share, deal_rows, deal_whole, dealt_steps, own_rows, part, share_of, share_out
from runtime.data.rows import row_count, rows_of
from runtime.data.workers import OwnSeed
from runtime.world import World

Steps = Iterator[tuple[Any, Share | None]]


@dataclass(frozen=True, slots=True)
class Dealing:
    """How training batches are divided: cut (`split`), or dealt with the last round completed (`even`)."""

    split: bool = False
    even: bool = True


class Feed:
    """The batches of one loader, for this rank."""

    def __init__(self, base: DataLoader[Any], world: World, dealing: Dealing) -> None:
        self.base = base
        self.world = world
        self.dealing = dealing

    def steps(self, kind: Kind) -> int | None:
        """The number of steps of a pass; None if the loader has no length."""
        try:
            batches = len(self.base)
        except TypeError:
            return None
        if self.shares_out(kind):
            return batches
        return dealt_steps(
            batches, self.world.size, drop_last=self.drops_last, even=self.dealing.even, rank=self.world.rank
        )

    @property
    def drops_last(self) -> bool:
        """Whether incomplete batches are left out, and so incomplete rounds of batches in training."""
        return bool(getattr(self.base.batch_sampler, "drop_last", self.base.drop_last))

    def shares_out(self, kind: Kind) -> bool:
        """Whether every batch is cut into parts, one per rank."""
        return kind is Kind.EVALUATION or self.dealing.split

    def open(self, kind: Kind) -> Steps:
        """The batches of a pass, each with its share."""
        raise NotImplementedError


class Local(Feed):
    """The loader as it is."""

    def steps(self, kind: Kind) -> int | None:
        try:
            return len(self.base)
        except TypeError:
            return None

    def open(self, kind: Kind) -> Steps:
        batches = iter(self.base)
        return ((batch, None) for batch in batches)


class Planned(Feed):
    """A loader of the same data set around the indices that the plan gives to this rank."""

    def __init__(self, base: DataLoader[Any], world: World, dealing: Dealing) -> None:
        super().__init__(base, world, dealing)
        self._indices = _Indices(self)
        settings = _settings(base)
        if base.num_workers:
            settings["worker_init_fn"] = OwnSeed(world.rank, base.worker_init_fn)
        if base.batch_sampler is None:
            settings |= {"sampler": self._indices, "batch_size": None}
        else:
            settings |= {"batch_sampler": self._indices}
        self._inner: DataLoader[Any] = DataLoader(base.dataset, **settings)

    def shares_out(self, kind: Kind) -> bool:
        return self.base.batch_sampler is not None and super().shares_out(kind)  # a single sample cannot be cut

    def plan(self, kind: Kind) -> Iterator[tuple[Any, Share]]:
        """The own indices of every step."""
        rank, world, even = self.world.rank, self.world.size, self.dealing.even
        batches = agreed(self.base, self.world)
        sampler = self.base.batch_sampler
        if self.shares_out(kind):
            return share_out(batches, rank, world)
        if sampler is None:
            return deal_whole(batches, rank, world, even=even, count=_one)
        if type(sampler) is BatchSampler:
            size = sampler.batch_size
            return deal_rows(batches, rank, world, size=size, even=even, drop_last=self.drops_last)
        return deal_whole(batches, rank, world, even=even, drop_last=self.drops_last)

    def open(self, kind: Kind) -> Steps:
        shares = self._indices.prepare(kind)
        batches = iter(self._inner)
        return ((batch, shares.popleft()) for batch in batches)


class _Indices:
    """The sampler of the inner loader: notes the share of each step beside handing out its indices.

    Workers are told indices ahead of time, so the shares wait in a queue; it belongs to one pass, also when a loader is
    iterated inside itself.
    """

    def __init__(self, feed: Planned) -> None:
        self._feed = feed
        self._kind = Kind.TRAINING
        self._shares: deque[Share] = deque()

    def prepare(self, kind: Kind) -> deque[Share]:
        self._kind, self._shares = kind, deque()
        return self._shares

    def __iter__(self) -> Iterator[Any]:
        return self._handed_out(self._feed.plan(self._kind), self._shares)

    @staticmethod
    def _handed_out(plan: Iterator[tuple[Any, Share]], shares: deque[Share]) -> Iterator[Any]:
        for indices, share in plan:
            shares.append(share)
            yield indices


class Stream(Feed):
    """An iterable data set, which every rank reads from start to end."""

    def __init__(self, base: DataLoader[Any], world: World, dealing: Dealing) -> None:
        super().__init__(base, world, dealing)
        self._inner: dict[bool, DataLoader[Any]] = {}

    def shares_out(self, kind: Kind) -> bool:
        return self.base.batch_size is not None and super().shares_out(kind)

    def open(self, kind: Kind) -> Steps:
        if self.base.batch_size is None:
            return deal_whole(iter(self.base), self.world.rank, self.world.size, even=self.dealing.even, count=_one)
        cut = self.shares_out(kind)
        if cut not in self._inner:
            self._inner[cut] = self._loader(cut)
        batches = iter(self._inner[cut])
        if cut:
            return ((batch, share_of(count, self.world.size)) for count, batch in batches)
        return self._dealt(batches)

    def _dealt(self, batches: Iterator[Any]) -> Steps:
        dealt = deal_whole(
            batches,
            self.world.rank,
            self.world.size,
            even=self.dealing.even,
            drop_last=self.drops_last,
            count=lambda counted: int(counted[0]),
        )
        return ((batch, share) for (_, batch), share in dealt)

    def _loader(self, cut: bool) -> DataLoader[Any]:
        settings = _settings(self.base)
        collate = settings.pop("collate_fn")
        mine = (self.world.rank, self.world.size) if cut else (0, 1)
        return DataLoader(
            self.base.dataset,
            batch_size=self.base.batch_size,
            drop_last=self.base.drop_last,
            collate_fn=_CollateRows(collate, *mine),
            **settings,
        )


def _one(sample: Any) -> int:
    return 1


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

    def open(self, kind: Kind) -> Steps:
        batches = iter(self.base)
        if self.shares_out(kind):
            return (self._cut(batch) for batch in batches)
        return deal_whole(
            batches,
            self.world.rank,
            self.world.size,
            even=self.dealing.even,
            drop_last=self.drops_last,
            count=lambda batch: row_count(batch) or 1,
        )

    def _cut(self, batch: Any) -> tuple[Any, Share]:
        """The own rows; where rows cannot be told apart all ranks take the batch, and it counts on rank 0."""
        world = self.world.size
        count = row_count(batch)
        if count is None:
            return batch, Share((1,) * world, (1, *(0,) * (world - 1)), is_one_batch=True)
        start, stop = part(count, self.world.rank, world)
        return rows_of(batch, start, stop) if stop > start else rows_of(batch, 0, 1), share_of(count, world)


def feed_for(base: DataLoader[Any], world: World, dealing: Dealing) -> Feed:
    """The feed that suits a loader."""
    if world.size == 1 or is_sharded(base):
        return Local(base, world, dealing)
    if type(base).__iter__ is not DataLoader.__iter__:
        return Opaque(base, world, dealing)
    if isinstance(base.dataset, IterableDataset):
        return Stream(base, world, dealing)
    return Planned(base, world, dealing)


def is_sharded(loader: DataLoader[Any]) -> bool:
    """Whether the loader hands different samples to different processes by itself."""
    inside = (loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None), loader.dataset)
    sharing = (
        p for p in inside if isinstance(p, DistributedSampler) or (hasattr(p, "num_replicas") and hasattr(p, "rank"))
    )
    # What is made for one process hands out all samples.
    return any(getattr(part, "num_replicas", None) != 1 for part in sharing)


def _settings(base: DataLoader[Any]) -> dict[str, Any]:
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
