"""Which failed process was the cause, and what to tell the user."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# A process that ends like this was hit itself; an error in Python, or NCCL's abort, may follow from another's end.
_CRASHES = frozenset(
    getattr(signal, name) for name in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGKILL") if hasattr(signal, name)
)
_GRACE_NS = 25 * 10**9  # torch elastic kills workers that ignore its SIGTERM for 30 s: a SIGKILL so late is its own


@dataclass(frozen=True, slots=True)
class Note:
    """What a worker wrote about its failure (`child.py`)."""

    time_ns: int
    status: int
    text: str
    """The traceback, or the message of `sys.exit`, or nothing."""
    follows: bool = False
    """Whether it ended since another one did, by its own words."""


@dataclass(frozen=True, slots=True)
class Exit:
    """A worker that ended badly."""

    rank: int
    code: int
    """As subprocess gives it: the status, or minus the signal."""
    note: Note | None = None

    @property
    def status(self) -> int:
        """What a shell would show: the status, or 128 + signal."""
        if self.note is not None:
            return self.note.status
        return 128 - self.code if self.code < 0 else self.code


def read_note(path: str | Path) -> Note | None:
    """The note in `path`; None if the worker left none, or torch elastic wrote one for it without our keys."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return Note(
            time_ns=int(content["time_ns"]),
            status=int(content["status"]),
            text=str(content["text"]),
            follows=bool(content.get("follows")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def cause(exits: Iterable[Exit], now_ns: int) -> Exit:
    """The one failure that the others follow from, as far as their ends can tell.

    A crash without a note comes first, then the earliest note, then what may be the effect of another's end, and then
    what says that it is.

    Raises:
        ValueError: `exits` is empty.
    """
    found = sorted(exits, key=lambda item: item.rank)
    first_ns = min((item.note.time_ns for item in found if item.note), default=now_ns)
    killed_by_agent = now_ns - first_ns > _GRACE_NS

    def order(item: Exit) -> tuple[int, int]:
        if item.note is not None:
            return (3 if item.note.follows else 1), item.note.time_ns
        signal_number = -item.code
        if signal_number == signal.SIGKILL and killed_by_agent:
            return 4, 0
        if signal_number in _CRASHES or item.code > 0:
            return 0, 0
        return (2, 0) if signal_number in (signal.SIGABRT, signal.SIGINT) else (4, 0)

    return min(found, key=order)


def describe(item: Exit, processes: int, restart: str | None = None) -> str:
    """The traceback, if there is one, and one line on what happened and what follows; ends with a newline."""
    text = item.note.text if item.note else ""
    happened = f"process {item.rank} of {processes} {_end_of(item)}"
    shown = " (above)" if text else ""
    others = "; the others were stopped" if processes > 1 else ""
    then = f"; starting again ({restart})" if restart else ""
    return f"{text}runtime launch: {happened}{shown}{others}{then}\n{_hint(text)}"


def _hint(text: str) -> str:
    """What an error of the process group means, where its own words leave that to be guessed."""
    last = text.rstrip().rpartition("\n")[2]
    for pattern, meaning in _MEANINGS:
        if found := pattern.search(last):
            return f"runtime launch: {meaning.format(*found.groups())}\n"
    return ""


def describe_stop(received: signal.Signals, exits: Iterable[Exit], processes: int, now_ns: int) -> str:
    """What to say when the launcher was stopped: also what went wrong while the processes ended, such as a save."""
    stopped = f"runtime launch: stopped by {received.name}"
    failed = [item for item in exits if item.note is not None or item.code == -signal.SIGKILL]
    if not failed:
        return f"{stopped}\n"
    first = cause(failed, now_ns)
    if first.note is None:
        return f"{stopped}; process {first.rank} of {processes} did not end in time and was killed\n"
    shown = " (above)" if first.note.text else ""
    return f"{first.note.text}{stopped}; process {first.rank} of {processes} {_end_of(first)}{shown} while it ended\n"


def _end_of(item: Exit) -> str:
    if item.note is None and item.code < 0:
        name = signal.Signals(-item.code).name if -item.code in set(signal.Signals) else f"signal {-item.code}"
        return f"was killed by {name}{_LIKELY_REASONS.get(name, '')}"
    return f"failed with exit status {item.status}"


_MEANINGS = (
    (
        re.compile(r"Timed out waiting (\d+)ms for (?:recv|send) operation"),
        (
            "another process did not answer for {0} ms, the timeout of the process group: its machine may be down, the "
            "link between them cut, or it is still at something else (InitProcessGroupKwargs(timeout=...) waits longer)"
        ),
    ),
    (
        re.compile(r"Connection (?:closed|reset) by peer \[([^\]]+)\]"),
        "the process at {0} has ended before this one: what was said there tells why",
    ),
)
_LIKELY_REASONS = {
    "SIGKILL": ", often because memory ran out (see dmesg)",
    "SIGABRT": (
        "; where gloo says above that received data have another size, two processes were in different collectives, "
        "or in the backwards of different models"
    ),
    "SIGINT": ": it was interrupted alone, without the launcher",
    "SIGSEGV": "; python -X faulthandler shows where",
}
