"""Where a prepared loader stands, so that a run can go on there: in the middle of an epoch, also on other processes.

What is kept is where the generators stood when the epoch began (its order can be had again) and how much of the
original loader's order the script has been given, whatever workers have read ahead. Restored, the next pass gives the
rest of that epoch. Generators that the whole program uses are left as they are found: a checkpoint restores them to
where they stood when it was saved, and that is where the script goes on.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

from runtime.data.draws import Draws, State
from runtime.data.feeds import Feed, Local
from runtime.data.passes import Pass, Purpose
from runtime.errors import ConfigurationError

FORMAT = 1
KEYS = {"format", "is_in_epoch", "unit", "place", "batch_size", "total", "shared_by", "epoch", "draws"}


@dataclass(slots=True)
class Begun:
    """A pass: where the generators stood at its epoch's start, and the place in the epoch where it began."""

    draws: State
    purpose: Purpose
    since: int
    batches: weakref.ref[Any]  # its iterator; a pass is over when that is gone or exhausted
    going_on: Pass | None  # None: the iterator is PyTorch's own, which counts by itself

    def steps(self) -> int | None:
        """The batches that the script has been given; None if the pass is over."""
        batches = self.batches()
        if batches is None or (isinstance(batches, GeneratorType) and batches.gi_frame is None):
            return None
        return self.going_on.step if self.going_on is not None else int(batches._num_yielded)  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class Restored:
    """The rest of an epoch, which the next pass gives."""

    draws: State
    since: int


class Place:
    """Where one loader stands. Loaders that leave out the first batches share it with the one they were made from."""

    __slots__ = ("_begun", "_draws", "_epoch", "_feed", "_restored")

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._draws = Draws(feed.base, with_others=feed.sampler is None)
        self._begun: Begun | None = None
        self._restored: Restored | None = None
        self._epoch: int | None = None  # the last one that the script told

    def set_epoch(self, epoch: int) -> None:
        """Hand the epoch to whatever of the loader wants to know it: batch sampler, sampler, data set."""
        self._epoch = epoch
        base = self._feed.base
        inside: tuple[Any, ...] = (
            base.batch_sampler,
            base.sampler,
            getattr(base.batch_sampler, "sampler", None),
            base.dataset,
        )
        for part in {id(part): part for part in inside}.values():
            if callable(getattr(part, "set_epoch", None)):
                part.set_epoch(epoch)

    def take_restored(self) -> Restored | None:
        """What `load` has restored and no pass has begun with yet."""
        restored, self._restored = self._restored, None
        return restored

    def now(self) -> State:
        """Where the generators stand."""
        draws = self._draws.state()
        draws["starts_workers"] = self._feed.starts_workers
        return draws

    def begin(
        self, draws: State, purpose: Purpose, since: int, batches: Iterator[Any], going_on: Pass | None = None
    ) -> None:
        """A pass begins; it is what the loader stands in until it is over."""
        self._begun = Begun(draws, purpose, since, weakref.ref(batches), going_on)

    def reopen(self, restored: Restored, purpose: Purpose) -> Any:
        """The steps that are left of a restored epoch."""
        found = self._draws.everybodys()
        self._draws.restore(restored.draws)
        try:
            with self._feed.as_if(restored.draws["starts_workers"]):
                return self._feed.open(purpose, restored.since)
        finally:
            self._draws.restore_everybodys(found)

    def state(self) -> dict[str, Any]:
        """See `Prepared.state_dict`."""
        feed, begun, restored = self._feed, self._begun, self._restored
        steps = None if begun is None else begun.steps()
        if restored is not None:
            is_in_epoch, draws, place = True, restored.draws, restored.since
        elif begun is not None and steps is not None:
            is_in_epoch, draws, place = True, begun.draws, feed.place(begun.purpose, steps, begun.since)
        else:
            is_in_epoch, draws, place = False, self.now(), 0
        return {
            "format": FORMAT,
            "is_in_epoch": is_in_epoch,
            "unit": _unit(feed),
            "place": place,
            "batch_size": feed.batch_size,
            "total": feed.total,
            "shared_by": _shared_by(feed),
            "epoch": self._epoch,
            "draws": draws,
        }

    def load(self, state: dict[str, Any]) -> None:
        """See `Prepared.load_state_dict`."""
        if KEYS - set(state) or state["format"] != FORMAT:
            raise ConfigurationError(
                f"this is not the state of a prepared loader (format {FORMAT}): it has {', '.join(map(str, state))}. "
                "Pass what state_dict() of a prepared loader gave."
            )
        self._begun = None
        if state["epoch"] is not None:
            self.set_epoch(state["epoch"])
        if not state["is_in_epoch"]:
            self._restored = None
            self._draws.restore_own(state["draws"])
            return
        self._restored = Restored(state["draws"], self._translated(state))

    def _translated(self, state: dict[str, Any]) -> int:
        """The saved place in the unit of this loader."""
        feed, place = self._feed, int(state["place"])
        if state["shared_by"] != _shared_by(feed):
            raise ConfigurationError(
                f"the loader's sampler shares data out by itself, the place was saved with {state['shared_by'] or 1} "
                f"process(es) and there are {feed.world.size}. Leave sharing out to prepare(): drop the sampler."
            )
        if state["total"] != feed.total and state["unit"] == _unit(feed) == "samples":
            raise ConfigurationError(
                f"the place was saved in an epoch of {state['total']} samples, and this one has {feed.total}: "
                "its order cannot be had again. Resume with the same data."
            )
        if state["unit"] == _unit(feed) and (state["unit"] == "samples" or state["batch_size"] == feed.batch_size):
            return place
        size, own = state["batch_size"] or 1, feed.unit if _unit(feed) == "samples" else feed.batch_size or 1
        samples = place * (1 if state["unit"] == "samples" else size)
        if _unit(feed) == "samples":
            return samples
        if samples % own:
            raise ConfigurationError(
                f"{samples} samples of the epoch are done, which are no whole number of batches of {own}. "
                f"Resume with batch_size={size}, or with one that divides {samples}."
            )
        return samples // own


def _unit(feed: Feed) -> str:
    return "batches" if feed.sampler is None else "samples"


def _shared_by(feed: Feed) -> int | None:
    """The number of processes over which the loader shares its data out by itself."""
    return feed.world.size if type(feed) is Local and feed.world.size > 1 else None
