"""An error that nobody catches ends one process: the others hear of it, and it is printed once.

Processes that end because another one did, or that have the same error as all others, print one line instead of a
traceback. A launcher that has put its own hook in decides for itself what it shows.
"""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import Any, Protocol

from runtime.errors import CollectiveError
from runtime.watch.places import Doing, place_of_error
from runtime.watch.reports import Report
from runtime.world import end_at_once

#: For Python 3.10: what many libraries bring, so that groups of exceptions are shown as newer versions show them.
_BACKPORT = "exceptiongroup"
LET_SPEAK_S = 0.5  # a launcher stops all once one has ended: the one that speaks for all must have done so by then


class Teller(Protocol):
    """What the hook needs of a watch."""

    def cause_of(self, error: BaseException) -> str:
        """What ended this process from outside, or nothing."""

    def tell(self, failure: Report) -> None:
        """Let the others know."""


class Hook:
    """`sys.excepthook` of a process that is one of several."""

    def __init__(self, watch: Teller, rank: int) -> None:
        self.previous = sys.excepthook
        self._watch = watch
        self._rank = rank

    def __call__(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> Any:
        """Show the error, or say why another process shows one; then tell the others."""
        if not issubclass(kind, Exception):  # Ctrl-C mostly reaches all of them, but not where one was signalled alone
            self.previous(kind, error, traceback)
            self._tell(error, traceback)
            return None
        line = self._line(error)
        if line:
            _mark(error, line)
        if line and _shows_as_python_does(_below(self.previous)):
            sys.stderr.write(f"[runtime] {line}\n")
            time.sleep(LET_SPEAK_S)
        else:
            self.previous(kind, error, traceback)
        if not line:
            self._tell(error, traceback)
        end_at_once()
        return None

    def _tell(self, error: BaseException, traceback: TracebackType | None) -> None:
        said = str(error).partition("\n")[0]
        text = f"{type(error).__name__}: {said}" if said else type(error).__name__
        self._watch.tell(Report(self._rank, Doing.CODE, place_of_error(traceback), 0.0, failure=text))

    def _line(self, error: BaseException) -> str:
        if isinstance(error, CollectiveError):
            if error.follows:
                return str(error)
            if error.told_by not in (None, self._rank):
                return f"rank {self._rank}: ended with the same error as rank {error.told_by}"
            return ""
        return self._watch.cause_of(error)


def _mark(error: BaseException, line: str) -> None:
    """Let who shows errors know of which other end this one follows (`runtime.launch.child`)."""
    with contextlib.suppress(AttributeError):  # of a class that has no room for it
        error.ended_since = line  # type: ignore[attr-defined]


def _below(hook: Any) -> Any:
    """The hook underneath PyTorch's own, which writes the rank before every line."""
    while getattr(hook, "__module__", "") == "torch.distributed.distributed_c10d":
        inside = [cell.cell_contents for cell in hook.__closure__ or () if callable(cell.cell_contents)]
        if not inside:
            break
        hook = inside[0]
    return hook


def _shows_as_python_does(hook: Any) -> bool:
    """Whether nobody has put in a hook that decides for itself what is shown."""
    return hook is sys.__excepthook__ or getattr(hook, "__module__", "").partition(".")[0] == _BACKPORT


_installed: list[Hook] = []


def install(watch: Teller, rank: int) -> None:
    """Put the hook before the one that is there."""
    _installed.append(Hook(watch, rank))
    sys.excepthook = _installed[-1]


def uninstall() -> None:
    """Put back what was there, unless somebody has put another hook before ours."""
    while _installed:
        hook = _installed.pop()
        if sys.excepthook is hook:
            sys.excepthook = hook.previous
