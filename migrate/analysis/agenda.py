"""Which units are to be run again: those that have read something of which more is known now.

This keeps the analysis linear in practice: a unit is run when it is met, and again only when a name, an attribute, a
parameter or a result that it has looked at has grown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING

from migrate.analysis.units import Module

if TYPE_CHECKING:
    from migrate.analysis.units import Unit

RUNS = 60  # real programs rest after two to eight runs of a unit


class Agenda:
    """Units that wait, and who has read what."""

    def __init__(self, runs: int = RUNS) -> None:
        self._runs = runs
        self._waiting: dict[Unit, None] = {}
        self._readers: dict[Hashable, set[Unit]] = {}
        self._count: Counter[Unit] = Counter()
        self._running: Unit | None = None
        self.is_cut_short = False  # a unit was to be run more often than the bound allows

    def add(self, unit: Unit) -> None:
        """Let a unit be run."""
        self._waiting[unit] = None

    def read(self, key: Hashable) -> None:
        """The running unit has looked at something; it is run again when that grows."""
        if self._running is not None:
            self._readers.setdefault(key, set()).add(self._running)

    def news(self, key: Hashable) -> None:
        """More is known about something."""
        for unit in self._readers.get(key, ()):
            self._waiting[unit] = None

    def next(self) -> Unit | None:
        """The unit to run now, modules first; None when all is done, or done often enough."""
        while self._waiting:
            unit = next((u for u in self._waiting if isinstance(u, Module)), None) or next(iter(self._waiting))
            del self._waiting[unit]
            self._count[unit] += 1
            if self._count[unit] <= self._runs:
                self._running = unit
                return unit
            self.is_cut_short = True
        self._running = None
        return None
