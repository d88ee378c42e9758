"""The record of one process: a line of JSON for each event, written at once; nothing is lost when it is killed."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

PATIENCE_S = 10.0  # how long a process waits for the others before it ends


class Journal:
    """Where events go, and the few numbers that all observers share."""

    def __init__(self, records: str, root: str) -> None:
        self.rank = int(os.environ.get("RANK", "0"))
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.folder = Path(records)
        self.root = root
        self.steps = 0  # of the optimizer that has taken most
        self.passes = 0  # begun so far
        self.last_pass = -1  # that of the last batch
        self.began = time.monotonic()
        self._last = self.began  # when something has happened
        self._process = os.getpid()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(self.folder / f"rank{self.rank}.jsonl", flags, 0o600)
        self._lock = threading.RLock()
        self._has_ended = False

    @property
    def is_ours(self) -> bool:
        """False in the workers that a loader forks."""
        return os.getpid() == self._process

    def write(self, event: str, **values: Any) -> None:
        """One event."""
        if self.is_ours and not self._has_ended:
            line = json.dumps({"event": event, **values}, default=str) + "\n"
            os.write(self._file, line.encode("utf-8", "backslashreplace"))
            self._last = time.monotonic()

    def end(self, how: str, *, status: int = 0, message: str = "", place: str = "") -> None:
        """The last event. What comes after it is not written."""
        with self._lock:
            still = time.monotonic() - self._last
            memory = peak_memory()
            self.write("end", how=how, status=status, message=message, place=place, memory=memory, still=still)
            self._has_ended = True

    def leave(self, how: str) -> NoReturn:
        """End the process where it stands: a script may catch `SystemExit`, and its threads may go on."""
        self.end(how)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.wait_for_others()
        os._exit(0)

    def wait_for_others(self) -> None:
        """Until all have come here: one that ends breaks the connections of those that still use them."""
        (self.folder / f"done{self.rank}").touch()
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if all((self.folder / f"done{rank}").exists() for rank in range(self.size)):
                return
            time.sleep(0.01)

    def place(self, frame: FrameType | None = None) -> str:
        """`train.py:31`: the innermost line of the user's own code."""
        frame = frame or sys._getframe(1)  # noqa: SLF001 - the only way to a frame without a traceback
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(self.root + os.sep):
                return f"{os.path.relpath(name, self.root)}:{frame.f_lineno}"
            frame = frame.f_back
        return ""


def peak_memory() -> int:
    """Bytes that this process held at most; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
