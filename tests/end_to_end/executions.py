"""Runs programs in forks of one process that has imported torch: the stage of the end-to-end tests, not launched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.verify.launching import free_port

if TYPE_CHECKING:
    from types import TracebackType

STAGE = Path(__file__).resolve().with_name("stage.py")
PATH = os.pathsep.join(map(str, (STAGE.parents[2], STAGE.parent / "stubs")))  # libraries that originals import
PATIENCE_S = 120
LIMIT_S = 15  # a mutated program may run for ever


@dataclass(frozen=True)
class Ran:
    """How a program ended on one rank."""

    status: int
    output: str
    errors: str
    files: dict[str, str]  # name → digest of what is in it

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()

    @property
    def said(self) -> tuple[str, dict[str, str]]:
        return self.output, self.files


def put(folder: Path, number: int, request: dict[str, object] | None) -> None:
    """Ask the processes of a stage for a run, or to end."""
    path = folder / f"request-{number}.json"
    path.with_suffix(".part").write_text(json.dumps(request))
    path.with_suffix(".part").replace(path)


class Stage:
    """The process, while it is open, or several that can be asked for one run together."""

    def __init__(self, folder: Path, processes: int = 1, limit_s: int = LIMIT_S) -> None:
        self._folder = folder
        self._number = 0
        self._limit_s = limit_s
        self._begun_in = dict(os.environ)
        self._processes = [self._begun(rank, processes) for rank in range(processes)]

    def _begun(self, rank: int, processes: int) -> subprocess.Popen[bytes]:
        placement = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes}
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": PATH,
            "MASTER_ADDR": "127.0.0.1",
            "STAGE_LIMIT_S": str(self._limit_s),
            **{name: str(value) for name, value in placement.items()},
        }
        with self._log(rank).open("wb") as log:
            command = [sys.executable, str(STAGE), str(self._folder)]
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self._folder)

    def _changed(self) -> list[str]:
        """The environment variables that are others than when the processes began."""
        now = dict(os.environ)
        return [name for name in {*now, *self._begun_in} if now.get(name) != self._begun_in.get(name)]

    def _log(self, rank: int) -> Path:
        return self._folder / f"log-{rank}"

    def __enter__(self):
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.wait()

    def run(self, script: Path, arguments: list[str], *, launched: bool, there: Path | None = None) -> Ran:
        """How a script ends, as the only process; `there`: the folder in which it works, else one of its own."""
        return self._answers(script, arguments, 1, launched=launched, there=there)[0]

    def on_gpu(self, number: int, script: Path, arguments: list[str], there: Path | None = None) -> Ran:
        """How a script ends on the CPU, as on one of two pretended GPUs."""
        return self._answers(script, arguments, 1, launched=False, gpu=number, there=there)[0]

    def together(
        self, script: Path, arguments: list[str], *, shared: bool = False, there: Path | None = None
    ) -> list[Ran]:
        """How a script ends on each of the processes, which meet, in a folder of its own or in one for all."""
        return self._answers(script, arguments, len(self._processes), launched=False, shared=shared, there=there)

    def left(self, name: str) -> Path:
        """Where a file is that the last run has written, as the only process or the first."""
        return self._folder / f"run-{self._number - 1}-0" / "work" / name

    def _answers(
        self,
        script: Path,
        arguments: list[str],
        count: int,
        *,
        launched: bool,
        gpu: int | None = None,
        shared: bool = False,
        there: Path | None = None,
    ) -> list[Ran]:
        port = free_port() if count > 1 else "29400"
        request = {
            "script": str(script),
            "arguments": arguments,
            "processes": count,
            "port": port,
            "launched": launched,
            "gpu": gpu,
            "shared": shared,
            "there": str(there or ""),
            "variables": {name: os.environ.get(name) for name in self._changed()},
        }
        put(self._folder, self._number, request)
        answers = [self._folder / f"result-{self._number}-{rank}.json" for rank in range(count)]
        self._number += 1
        end = time.monotonic() + PATIENCE_S
        while not all(answer.exists() for answer in answers):
            if any(process.poll() is not None for process in self._processes) or time.monotonic() > end:
                raise AssertionError(f"no answer:\n{self._log(0).read_text()}")
            time.sleep(0.005)
        return [Ran(**json.loads(answer.read_text())) for answer in answers]
