"""The prepared loader: every process gets its share of the data, on its device.

**Training.** Whole batches of the original loader are dealt to the N processes: batch i goes to rank i % N, the last
round is completed, `len(loader)` is the number of steps of one process. With `split_batches` every batch is cut into N
parts, `len(loader)` stays, and `accelerator.backward` weighs the parts by their rows.

**Evaluation.** *A pass is an evaluation if it starts while gradients are disabled (`torch.no_grad`, `inference_mode`),
or while at least one model has been prepared and every prepared model is in eval mode.* Then every batch of the
original loader is shared out over the processes, each of which takes the same number of steps. After
`gather_for_metrics` every process sees exactly the original batch, in the original order of rows, so that whatever a
script computes from it (counts, sums, means of batch means, lists of predictions) is what one process would compute.

`len(loader)` is the number of steps of the most recent pass; before the first one, that of a pass which would start
now. With `batch_size=None` samples are dealt in both kinds. A loader with a `DistributedSampler`, or whose sampler or
data set has `num_replicas` and `rank`, shares its data out already; its batches are only moved to the device.

The prepared loader shares the attributes of the original one (`dataset`, `sampler`, `batch_sampler`, `batch_size`, ...)
and is an instance of its class. On one process, when nothing has to be moved or counted, iterating it *is* iterating
the original: no look-ahead, no random numbers, no generator in between.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset

from runtime.accumulation import Accumulation
from runtime.data.feeds import Dealing, Feed, Local, Planned, Steps, has_own_iteration
from runtime.data.filling import Filling
from runtime.data.passes import Pass, Passes, Purpose
from runtime.data.place import Place, Restored
from runtime.data.plan import Share
from runtime.data.prefetch import Stay, transfer
from runtime.data.streams import Opaque, Stream
from runtime.data.uneven import warn_if_all_left_out, warn_if_uneven
from runtime.devices import Streams
from runtime.errors import ConfigurationError, PrepareError
from runtime.world import World

T = TypeVar("T")


@dataclass(slots=True)
class Source:
    """All that a prepared loader adds to the original one."""

    feed: Feed
    passes: Passes
    accumulation: Accumulation
    transfer: Stay
    place: Place
    filling: Filling | None = None
    skip: int | None = None  # steps that every pass leaves out, where the script says so
    is_prepared: bool = True  # False: only steps are left out, of a loader that is still to be prepared
    last_purpose: Purpose | None = None

    def iterate(self, purpose: Purpose | None = None) -> Iterator[Any]:
        """A pass; None: for the purpose that the state of the program asks for."""
        restored = self._restored(purpose)
        if restored is None and self.is_plain:
            draws = self.place.now()
            original = self.feed.original()
            self.place.begin(draws, Purpose.TRAINING, 0, original)
            self.passes.begin_direct(original, partial(self.feed.steps, Purpose.TRAINING))
            return original
        self.last_purpose = purpose = purpose or self.passes.purpose()
        if purpose is not Purpose.TRAINING:
            self.passes.before_evaluation()
        if restored is None:
            if self.skip:
                warn_if_all_left_out(self.feed, purpose, self.skip)
            since, draws = self.feed.place(purpose, self.skip or 0), self.place.now()
            steps = self.feed.open(purpose, since)
        else:
            since, draws = restored.since, restored.draws
            steps = self.place.reopen(restored, purpose)
        if purpose is Purpose.TRAINING and self.passes.models and self.feed.world.size > 1:
            warn_if_uneven(self.feed, since)
        going_on = Pass(self.feed.steps(purpose, since))
        if self.filling is not None:
            steps = self.filling.through(steps, purpose, since)
        batches = self._run(steps, going_on)
        self.place.begin(draws, purpose, since, batches, going_on)
        return batches if has_own_iteration(self.feed.base) else _Batches(batches, partial(self.length, purpose))

    @property
    def is_plain(self) -> bool:
        """Whether nothing has to be moved, counted or left out: iterating is iterating the original."""
        feed = self.feed
        is_counted = self.accumulation.steps > 1 or feed.base.persistent_workers or has_own_iteration(feed.base)
        stays = type(self.transfer) is Stay and self.filling is None
        return feed.world.size == 1 and stays and not is_counted and not self.skip

    def _run(self, steps: Steps, going_on: Pass) -> Iterator[Any]:
        self.passes.begin(going_on)
        steps = self.transfer.through(steps)
        if going_on.steps is None and self.accumulation.asks_for_the_last:
            steps = _until_known(steps, going_on)
        try:
            for batch, share in steps:
                self.passes.advance(going_on, share)
                yield batch
        finally:
            self.passes.end(going_on)

    def _restored(self, purpose: Purpose | None) -> Restored | None:
        """The place that a checkpoint restored; it also counts where the script leaves out batches by itself."""
        restored = self.place.take_restored()
        if restored is None or self.skip is None:
            return restored
        purpose = purpose or self.passes.purpose()
        asked = self.feed.place(purpose, self.skip)
        if asked == 0 and restored.since == self.feed.total:  # the script counts the epoch that is over as done
            for _ in self.place.reopen(restored, purpose):
                pass
            return None
        if asked != restored.since:
            warnings.warn(
                f"skip_first_batches(loader, {self.skip}) asks for another place in the epoch ({asked}) than the one "
                f"that was restored ({restored.since}), which is taken. Skip as many, or do not restore the loader.",
                stacklevel=4,
            )
        return restored

    def length(self, purpose: Purpose | None = None) -> int:
        """The steps of a pass; None: of the most recent, or of one that would start now.

        A restored place changes nothing. Before the first pass over a loader that shuffles, models in eval mode say
        nothing of it: they may have been evaluated on other data.

        Raises:
            TypeError: the original loader has no length.
        """
        if purpose is None:
            is_to_train_on = torch.is_grad_enabled() and self.feed.shuffles
            purpose = self.last_purpose or (Purpose.TRAINING if is_to_train_on else self.passes.purpose())
        steps = self.feed.steps(purpose, self.feed.place(purpose, self.skip or 0))
        return len(self.feed.base) if steps is None else steps


def _until_known(steps: Steps, going_on: Pass) -> Steps:
    """The steps of a pass that nobody knows the number of, each when the next one is there: so the last is told."""
    waiting: list[tuple[Any, Share | None]] = []
    failure = None
    try:
        for step in steps:
            yield from waiting
            waiting = [step]
    except Exception as error:  # noqa: BLE001  raised below, when the step before it was given
        failure = error
    else:
        going_on.steps = going_on.step + len(waiting)
    yield from waiting
    if failure is not None:
        raise failure


class _Batches:
    """The batches of a pass, as many as PyTorch's own iterator says it has: `len(iter(loader))`."""

    __slots__ = ("_batches", "_length")

    def __init__(self, batches: Iterator[Any], length: Callable[[], int]) -> None:
        self._batches = batches
        self._length = length

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def __len__(self) -> int:
        return self._length()


class Prepared:
    """What a prepared loader does differently from the class it is mixed into."""

    __slots__ = ()
    _source: Source

    def __iter__(self) -> Iterator[Any]:
        return self._source.iterate()

    def __len__(self) -> int:
        return self._source.length()

    def set_epoch(self, epoch: int) -> None:
        """Hand the epoch to whatever of the loader wants to know it: batch sampler, sampler, data set."""
        self._source.place.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands: tensors, numbers and tuples, small, the same for any number of processes.

        In the body of a loop over it that is the place behind the current batch, whatever workers have read ahead. A
        loop that was left (`break`) is over: the next pass is a new epoch.
        """
        return self._source.place.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was called: the next pass gives the batches of that epoch that were not given yet.

        Loops that begin after it are what they would have been. Generators that the whole program draws from are not
        touched; they are for the checkpoint to restore. The number of processes may be another one.

        Raises:
            ConfigurationError: another kind of state, other data, or a place that this loader does not have.
        """
        self._source.place.load(state)

    @property
    def total_batch_size(self) -> int | None:
        """The samples of one training step over all processes; None where batches have no fixed size."""
        feed = self._source.feed
        if feed.batch_size is None:
            return None
        return feed.batch_size if feed.dealing.split else feed.batch_size * feed.world.size

    @property
    def total_dataset_length(self) -> int:
        """The samples in the data set."""
        return len(cast("Any", self._source.feed.base.dataset))


@dataclass(frozen=True, slots=True)
class PassesFor:
    """A prepared loader whose passes have one purpose, whatever the state of the program says when they start."""

    loader: Prepared
    purpose: Purpose

    def __iter__(self) -> Iterator[Any]:
        return self.loader._source.iterate(self.purpose)  # noqa: SLF001  its own class

    def __len__(self) -> int:
        return self.loader._source.length(self.purpose)  # noqa: SLF001  as above


def passes_for(dataloader: DataLoader[T], purpose: Purpose) -> DataLoader[T] | PassesFor:
    """Passes of one purpose over a prepared loader; one that is not prepared is given back."""
    return PassesFor(dataloader, purpose) if isinstance(dataloader, Prepared) else dataloader


class PreparedLoader(Prepared, DataLoader[Any]):  # type: ignore[misc]  # iterates a generator, not a _BaseDataLoaderIter
    """A prepared loader of PyTorch's own class."""

    __slots__ = ("_source",)


def prepared_loader(
    base: DataLoader[Any],
    *,
    world: World,
    passes: Passes,
    accumulation: Accumulation,
    dealing: Dealing,
    device: torch.device | None,
    non_blocking: bool,
    streams: Streams | None = None,
    spread: Callable[[Any], Any] | None = None,
) -> DataLoader[Any]:
    """`base` prepared: an instance of its class that shares its attributes.

    Args:
        device: where batches are moved to; None: they stay where they are.
        streams: what copies a batch beside the computation.
        spread: what shares a batch out over the chips of this process when it has arrived.
    """
    feed = feed_for(base, world, dealing)
    may_look_ahead = base.num_workers > 0 and feed.sampler is not None
    way = transfer(device, streams, non_blocking=non_blocking, may_look_ahead=may_look_ahead, spread=spread)
    filling = Filling(feed) if dealing.fill else None
    return _around(base, Source(feed, passes, accumulation, way, Place(feed), filling))


def _around(base: DataLoader[Any], source: Source) -> DataLoader[Any]:
    kind: type[Any] = PreparedLoader
    if type(base) is not DataLoader:
        kind = type(
            type(base).__name__, (Prepared, type(base)), {"__slots__": ("_source",), "__doc__": type(base).__doc__}
        )
    result = object.__new__(kind)
    object.__setattr__(result, "__dict__", base.__dict__)
    object.__setattr__(result, "_source", source)
    return cast("DataLoader[Any]", result)


def skip_first_batches(dataloader: DataLoader[Any], num_batches: int = 0) -> DataLoader[Any]:
    """A loader whose passes leave out the first `num_batches` steps: for the epoch that a run goes on in.

    What is left out is not read where the data set is indexed. The loader's place stays one with the original's: a
    checkpoint that is saved meanwhile has it. Where a checkpoint has restored the place already, that is where the next
    pass begins, and nothing is left out twice; if that is the end of an epoch and nothing is to be left out, a new one.

    Args:
        dataloader: a prepared loader, or any other on one process, which may be prepared then.
        num_batches: steps of one process, as its loop counts them.

    Raises:
        ConfigurationError: `num_batches` is no whole number of at least 0, or the loader no `DataLoader`.
    """
    if not hasattr(num_batches, "__index__") or num_batches < 0:
        raise ConfigurationError(f"skip_first_batches(loader, {num_batches}): pass a whole number of at least 0.")
    if not isinstance(dataloader, DataLoader):
        raise ConfigurationError(
            f"skip_first_batches() leaves batches out of a DataLoader, and got a {type(dataloader).__name__}. "
            f"Of anything else itertools.islice(batches, {num_batches}, None) does."
        )
    if isinstance(dataloader, Prepared):
        source = dataloader._source  # noqa: SLF001  its own class
        skip = (source.skip or 0) + num_batches
        return _around(source.feed.base, replace(source, skip=skip, last_purpose=None))
    passes, feed = Passes(0), Local(dataloader, World(), Dealing())
    source = Source(feed, passes, Accumulation(1, passes), Stay(), Place(feed), skip=num_batches, is_prepared=False)
    return _around(dataloader, source)


def behind(loader: Prepared, prepare: Callable[[DataLoader[Any]], DataLoader[Any]], processes: int) -> DataLoader[Any]:
    """The loader itself if it is prepared; one that only leaves batches out of another, with that one prepared.

    Raises:
        PrepareError: there are several processes, and which of its batches are theirs is told by the prepared one.
    """
    source = loader._source  # noqa: SLF001  its own class
    if source.is_prepared:
        return cast("DataLoader[Any]", loader)
    skip = source.skip or 0
    if skip and processes > 1:
        raise PrepareError(
            f"prepare(skip_first_batches(loader, {skip})): steps of several processes can be left out of a prepared "
            f"loader only. Turn it round: skip_first_batches(prepare(loader), {skip})."
        )
    return skip_first_batches(prepare(source.feed.base), skip)


def feed_for(base: DataLoader[Any], world: World, dealing: Dealing) -> Feed:
    """The feed that suits a loader."""
    is_indexed = not (has_own_iteration(base) or isinstance(base.dataset, IterableDataset) or is_sharded(base))
    if world.size == 1 and is_indexed and base.persistent_workers:  # they can only be told other indices from inside
        return Planned(base, world, Dealing(split=True))
    if world.size == 1 or is_sharded(base):
        return Local(base, world, dealing)
    if dealing.dispatch:
        from runtime.data.dispatch import Dispatch  # late: few programs ask for it

        return Dispatch(base, world, dealing, feed_for(base, World(), dealing))
    if has_own_iteration(base):
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
    node = getattr(loader.dataset, "_distributed", None)  # datasets.distributed.split_dataset_by_node
    # What is made for one process hands out all samples.
    return getattr(node, "world_size", 1) != 1 or any(getattr(part, "num_replicas", None) != 1 for part in sharing)
