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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.utils.data import DataLoader

from runtime.accumulation import Accumulation
from runtime.data.feeds import Dealing, Feed, Local, Steps, feed_for
from runtime.data.passes import Kind, Passes
from runtime.devices import moved
from runtime.world import World


@dataclass(slots=True)
class Source:
    """All that a prepared loader adds to the original one."""

    feed: Feed
    passes: Passes
    accumulation: Accumulation
    device: torch.device | None  # None: batches stay where they are
    non_blocking: bool = False
    last_kind: Kind | None = None

    def iterate(self) -> Iterator[Any]:
        """A pass, of the kind that the state of the program asks for."""
        is_plain = type(self.feed) is Local and self.device is None
        if is_plain and self.feed.world.size == 1 and self.accumulation.steps == 1:
            return iter(self.feed.base)
        self.last_kind = kind = self.passes.kind()
        return self._run(self.feed.open(kind), self.feed.steps(kind))

    def _run(self, steps: Steps, count: int | None) -> Iterator[Any]:
        going_on = self.passes.begin(count)
        try:
            for batch, share in steps:
                self.passes.advance(going_on, share)
                yield batch if self.device is None else moved(batch, self.device, self.non_blocking)
        finally:
            self.passes.end(going_on)

    def length(self) -> int:
        """The steps of the most recent pass, or of one that would start now.

        Raises:
            TypeError: the original loader has no length.
        """
        steps = self.feed.steps(self.last_kind or self.passes.kind())
        return len(self.feed.base) if steps is None else steps


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
        base = self._source.feed.base
        inside = (base.batch_sampler, base.sampler, getattr(base.batch_sampler, "sampler", None), base.dataset)
        for part in {id(part): part for part in inside}.values():
            if callable(getattr(part, "set_epoch", None)):
                cast("Any", part).set_epoch(epoch)

    @property
    def total_batch_size(self) -> int | None:
        """The samples of one training step over all processes; None where batches have no fixed size."""
        feed = self._source.feed
        size = getattr(feed.base.batch_sampler, "batch_size", None) or feed.base.batch_size
        if size is None:
            return None
        return int(size) if feed.dealing.split else int(size) * feed.world.size

    @property
    def total_dataset_length(self) -> int:
        """The samples in the data set."""
        return len(cast("Any", self._source.feed.base.dataset))


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
) -> DataLoader[Any]:
    """`base` prepared: an instance of its class that shares its attributes."""
    kind: type[Any] = PreparedLoader
    if type(base) is not DataLoader:
        kind = type(
            type(base).__name__, (Prepared, type(base)), {"__slots__": ("_source",), "__doc__": type(base).__doc__}
        )
    result = object.__new__(kind)
    object.__setattr__(result, "__dict__", base.__dict__)
    source = Source(feed_for(base, world, dealing), passes, accumulation, device, non_blocking)
    object.__setattr__(result, "_source", source)
    return cast("DataLoader[Any]", result)
