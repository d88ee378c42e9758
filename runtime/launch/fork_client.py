"""Workers that are forked: torch elastic starts and watches them as ever, and `fork_server.py` is asked for them.

Imports torch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any
from unittest.mock import patch

from torch.distributed.elastic.agent.server import local_elastic_agent
from torch.distributed.elastic.multiprocessing.api import SubprocessContext

# Those that torch elastic takes.
_ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]


class ForkServer:
    """The line to the process that forks, and how its children have ended."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._ended: dict[int, int] = {}
        self.is_gone = False

    def start(self, request: dict[str, Any]) -> Worker | None:
        """A new worker; None if the server cannot fork it."""
        try:
            self._line.send(request)
            while True:
                kind, number, status = self._line.recv()
                if kind != "ended":
                    return Worker(self, number) if kind == "started" else None
                self._ended[number] = status
        except (OSError, EOFError):
            self.is_gone = True
            return None

    def status(self, number: int, timeout_s: float = 0) -> int | None:
        """How a worker has ended, as subprocess tells it; None if it still runs after the timeout."""
        deadline = time.monotonic() + timeout_s
        while number not in self._ended and not self.is_gone:
            try:
                if not self._line.poll(max(0.0, deadline - time.monotonic())):
                    return None
                _, ended, status = self._line.recv()
                self._ended[ended] = status
            except (OSError, EOFError):  # somebody has killed it, and Linux its workers
                self.is_gone = True
        return self._ended.get(number, -signal.SIGKILL)


class Worker:
    """What torch elastic asks of a `subprocess.Popen`, and of its own wrapper of one."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self.pid = pid
        self.proc = self

    def poll(self) -> int | None:
        return self._server.status(self.pid)

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def wait(self, timeout: float) -> int:
        status = self._server.status(self.pid, timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return status

    def close(self, death_sig: signal.Signals | None = None) -> None:
        for send in (os.killpg, os.kill):  # the second for one that is not yet the head of its group
            with suppress(ProcessLookupError):
                send(self.pid, death_sig or signal.SIGTERM)
                return


class _Held:
    """Holds signals that end a launch back until all workers have started.

    Earlier, their handler would stop only the workers that it knows of already.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._come: list[int] = []

    def hold(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in _ENDINGS}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._come.append(number)

    def release(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._come:
            os.kill(os.getpid(), self._come[0])


class _Forked(SubprocessContext):
    server: ForkServer
    held: _Held

    def _start(self) -> None:
        self.held.hold()
        # Without the file of child.py, and the launcher whose end is the end of a worker: that is the server here.
        for rank, (_, _, *arguments) in self.args.items():
            request = {
                "environment": {**os.environ, **self.envs[rank]},
                "arguments": tuple(str(argument) for argument in arguments),
                "stdout": self.stdouts[rank],
                "stderr": self.stderrs[rank],
            }
            worker = self.server.start(request)
            if worker is None:
                self._close(signal.SIGKILL)
                self.subprocess_handlers = {}
                super()._start()  # type: ignore[no-untyped-call]
                return
            self.subprocess_handlers[rank] = worker  # type: ignore[assignment]  # has what is asked of one


@contextmanager
def forked_by(server: ForkServer) -> Iterator[None]:
    """Inside of this context torch elastic's agent starts its workers through `server`."""
    held = _Held()

    def start_processes(*, start_method: str = "", **rest: Any) -> SubprocessContext:
        context = _Forked(**rest)
        context.server, context.held = server, held
        try:
            context.start()
        except BaseException:
            context.close(signal.SIGKILL)
            raise
        return context

    with patch.object(local_elastic_agent, "start_processes", start_processes):  # the agent has no other place for it
        try:
            yield
        finally:
            held.release()
