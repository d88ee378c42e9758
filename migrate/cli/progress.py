"""How far a long run is, on the terminal of whoever waits for it: never in a pipe, in a log, or where CI is set."""

from __future__ import annotations

import os
import sys
import time

from migrate.report.stream import emit

SHOWN_AFTER_S = 1.0  # a shorter run is over before a person wonders
EVERY_S = 0.1
WIDTH = 30  # characters of a whole bar


class Bar:
    """One line that is written over: `migrate: analysing [#####.....] 12 of 24`."""

    def __init__(self) -> None:
        self._next = time.monotonic() + SHOWN_AFTER_S
        self._is_shown = False

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Say what a run does, how much of it is done, and how much there is to do; 0: nobody knows."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_S
        filled = WIDTH * done // total if total else 0
        how_far = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {done:,} of {total:,}" if total else f"{done:,} files"
        emit(f"\r\x1b[Kmigrate: {phase} {how_far}", sys.stderr)
        self._is_shown = True

    def wipe(self) -> None:
        """Take the line away, before anything else is said."""
        if self._is_shown:
            emit("\r\x1b[K", sys.stderr)
        self._is_shown = False


class Silence:
    """Where nobody looks."""

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Nothing."""

    def wipe(self) -> None:
        """Nothing."""


def progress(*, quiet: bool) -> Bar | Silence:
    """What tells how far a run is, to whom."""
    return Bar() if _is_watched() and not quiet else Silence()


def _is_watched() -> bool:
    return sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
