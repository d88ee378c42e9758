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

if TYPE_CHECKING:
    from types import TracebackType

STAGE = Path(__file__).resolve().parents[1] / "end_to_end" / "stage.py"
PATH = os.pathsep.join(map(str, (STAGE.parents[2], STAGE.parent / "stubs")))
PATIENCE_S = 120
LIMIT_S = 15  # a mutated program may run for ever


@dataclass(frozen=True)
class Ran:
    """How a program ended."""

    status: int
    output: str
    errors: str
    files: dict[str, str]  # name → digest

    @property
    def said(self) -> tuple[str, dict[str, str]]:
        return self.output, self.files


class Stage:
    """The process, while it is open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": PATH,
            "RANK": "0",
            "STAGE_LIMIT_S": str(LIMIT_S),
        }
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(STAGE), str(folder)], env=environment, stdout=log, stderr=log, cwd=folder
            )

    def __enter__(self):
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def run(self, script: Path, arguments: list[str], *, launched: bool) -> Ran:
        """How a script ends, as the only process."""
        request = {"script": str(script), "arguments": arguments, "processes": 1, "port": 29400, "launched": launched}
        path = self._folder / f"request-{self._number}.json"
        path.with_suffix(".part").write_text(json.dumps(request))
        path.with_suffix(".part").replace(path)
        answer = self._folder / f"result-{self._number}-0.json"
        self._number += 1
        end = time.monotonic() + PATIENCE_S
        while not answer.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"no answer:\n{(self._folder / 'log').read_text()}")
            time.sleep(0.005)
        return Ran(**json.loads(answer.read_text()))
