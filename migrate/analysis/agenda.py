"""Which units are to be run: those that were met, and those that have read something of which more is known now.

A unit that is needed is run at once, inside the one that needs it, as the program itself would: most of what a caller
reads is there when it reads it, and few units are run twice. A unit is run again only when a name, an attribute, a
parameter or a result that it has looked at has grown. This keeps the analysis linear in practice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from migrate.analysis.units import Module

if TYPE_CHECKING:
    from migrate.analysis.units import Unit

FRESH = 8  # how often a unit is run again before its turn, at most
RUNS = 60  # of one unit, at most: real programs rest after one to four
ON_AVERAGE = 6  # runs of a unit, where there are many: the largest real programs took two to four
FEW = 3000  # so many runs are seconds
DEEPEST_CALL = 30  # calls inside calls; what lies deeper waits its turn

_RUN = "<run>"  # key: that a unit has been run

_Made = TypeVar("_Made")


@dataclass(eq=False, slots=True)
class _Memory:
    """What was worked out of what is known, and is asked for by many units; a reader like them."""

    key: Hashable
    make: Callable[[], object]
    made: object = None


class Agenda:
    """Units that wait, those that are running, and who has read what."""

    def __init__(self, run: Callable[[Unit], None], runs: int = RUNS) -> None:
        self._run = run
        self._runs = runs
        self._modules: dict[Unit, None] = {}
        self._functions: dict[Unit, None] = {}
        self._readers: dict[Hashable, dict[Unit | _Memory, None]] = {}
        self._memories: dict[Hashable, _Memory] = {}
        self._doubted: dict[_Memory, set[Unit]] = {}  # see `_doubt`
        self._count: Counter[Unit] = Counter()
        self._all = 0  # runs so far
        self._running: list[Unit] = []
        self._unsettled: dict[Unit, None] = {}  # met something unknown in their last run
        self._reader: Unit | _Memory | None = None  # what reads now
        self._reading: set[Hashable] = set()  # what it has read, so that it is noted once
        self.surprises: Counter[Unit] = Counter()  # how often a running unit read something too early
        self.cut_short: dict[Unit, None] = {}  # what was to be run when a bound was reached

    def _queue(self, unit: Unit) -> dict[Unit, None]:
        return self._modules if isinstance(unit, Module) else self._functions

    def add(self, unit: Unit) -> None:
        """Let a unit be run, some time."""
        if not self.cut_short or unit not in self._count:
            self._queue(unit)[unit] = None

    def is_met(self, unit: Unit) -> bool:
        """Whether the unit has been run, or waits."""
        return unit in self._count or self.is_waiting(unit)

    def is_waiting(self, unit: Unit) -> bool:
        """Whether more is known now than when the unit was run."""
        return unit in self._queue(unit)

    def awaits(self, unit: Unit) -> bool:
        """The same, for one that reads on: it is told when the unit has been run."""
        self.read((unit, _RUN))
        return self.is_waiting(unit)

    def demand(self, unit: Unit) -> None:
        """Run a unit that waits for its first run now, since what it gives is needed.

        One that has been run is better run again when all that call it have passed what they pass.
        """
        waiting = self._queue(unit)
        if unit in waiting and unit not in self._count and len(self._running) < DEEPEST_CALL:
            del waiting[unit]
            self._start(unit)

    def refresh(self, unit: Unit) -> bool:
        """Run a waiting unit again before its turn, since its results are of no use to a call; whether it was run.

        Not inside of itself, and not for ever.
        """
        if unit not in self._functions or unit in self._running or len(self._running) >= DEEPEST_CALL:
            return False
        if self._count[unit] >= FRESH:
            return False
        del self._functions[unit]
        self._start(unit)
        return True

    def run_all(self) -> None:
        """Run until no unit waits, nor would if what is remembered were made anew."""
        self._run_waiting()
        while self._doubted:
            for memory in [*self._doubted]:
                self._renew(memory)
            self._run_waiting()

    def _run_waiting(self) -> None:
        while firsts := [next(iter(waiting)) for waiting in (self._modules, self._functions) if waiting]:
            unit = min(firsts, key=self._count.__getitem__)  # a package of many modules runs them once, not in turns
            del self._queue(unit)[unit]
            self._start(unit)

    def _start(self, unit: Unit) -> None:
        if self._count[unit] and self._is_enough(unit):
            self._cut_short(unit)
            return
        self._count[unit] += 1
        self._all += 1
        self._unsettled.pop(unit, None)
        self._running.append(unit)
        try:
            with self._read_by(unit):
                self._run(unit)
        finally:
            self._running.pop()
        self.news((unit, _RUN))

    def _is_enough(self, unit: Unit) -> bool:
        """Whether a bound is reached, for this unit or for all."""
        return self._count[unit] >= self._runs or self._all >= max(FEW, ON_AVERAGE * len(self._count))

    def _cut_short(self, unit: Unit) -> None:
        """Run nothing again: what is learnt by then is reported, and nothing is done by it."""
        self.cut_short[unit] = None
        for waiting in (self._modules, self._functions):
            for known in [each for each in waiting if each in self._count]:
                del waiting[known]
        self._doubted.clear()
        self._unsettled.clear()

    @contextmanager
    def _read_by(self, reader: Unit | _Memory) -> Iterator[None]:
        outer = self._reader, self._reading
        self._reader, self._reading = reader, set()
        try:
            yield
        finally:
            self._reader, self._reading = outer

    def wait_for_rest(self) -> None:
        """The running unit has met something unknown: it is run again at rest, unless a later run knows it."""
        if self._running:
            self._unsettled[self._running[-1]] = None

    def rest(self) -> None:
        """Let all units run again that met something unknown in their last run: it will stay unknown."""
        for unit in self._unsettled:
            self.add(unit)

    def read(self, key: Hashable) -> None:
        """The running unit has looked at something; it is run again when that grows."""
        if key not in self._reading and self._reader is not None:
            self._reading.add(key)
            readers = self._readers.get(key)
            if readers is None:
                self._readers[key] = {self._reader: None}
            else:
                readers[self._reader] = None

    def remembered(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """What `make` gives, which only reads: made once, and again when something has grown that it has read."""
        self.read(key)
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories[key] = _Memory(key, make)
            memory.made = self._made(memory)
        else:
            self._renew(memory)
        return cast("_Made", memory.made)

    def _made(self, memory: _Memory) -> object:
        with self._read_by(memory):
            return memory.make()

    def _renew(self, memory: _Memory) -> None:
        """Make anew what is in doubt; who has read it is run again only if it is another now."""
        told = self._doubted.pop(memory, None)
        if told is None:
            return
        made = self._made(memory)
        if made != memory.made:
            memory.made = made
            for reader in self._readers.get(memory.key, ()):
                if not isinstance(reader, _Memory) and reader not in told and reader not in self._running:
                    self.add(reader)

    def news(self, key: Hashable, is_fresh: Callable[[Unit], bool] = lambda _: False) -> None:
        """More is known about something: whoever has read it is to be run again.

        Not a running unit for which it is fresh, made anew whenever the unit runs: there, a read that comes before a
        write never sees it, unless both are in a loop (see `statements`).
        """
        for reader in self._readers.get(key, ()):
            if isinstance(reader, _Memory):
                self._doubt(reader, is_fresh)
            else:
                self._tell(reader, is_fresh)

    def _tell(self, reader: Unit, is_fresh: Callable[[Unit], bool]) -> None:
        if reader in self._running and is_fresh(reader):
            self.surprises[reader] += 1
        else:
            self.add(reader)

    def _doubt(self, memory: _Memory, is_fresh: Callable[[Unit], bool]) -> None:
        """What is remembered may be another now, and what was made of it: that is seen when someone asks for it.

        What is running is told at once, since it has read what was; where that is fresh for it, it is told no more.
        """
        if self.cut_short:
            return
        readers = self._readers.get(memory.key, {})
        fresh = {unit for unit in self._running if is_fresh(unit)}
        told = self._doubted.get(memory)
        if told is None:
            told = fresh
            for unit in [each for each in self._running if each in readers]:
                self._tell(unit, is_fresh)
        elif told <= fresh:
            return
        self._doubted[memory] = told & fresh
        for reader in readers:
            if isinstance(reader, _Memory):
                self._doubt(reader, is_fresh)
