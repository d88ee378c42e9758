"""Runs orders through the zygote: what `migrate.verify.launching.run` does, many times as fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from migrate.verify.launching import RECORDER, Exit, Start, environment, free_port

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CLOSING_S = 30


class Zygote:
    """A process that forks the processes of runs."""

    def __init__(self, *paths: str) -> None:
        self._paths = [*paths, str(ROOT)]
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(self._paths), "OMP_NUM_THREADS": "1"}
        variables |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(HERE / "zygote.py")]
        self._process = subprocess.Popen(
            command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE
        )

    def run(self, start: Start, order: Path, work: Path, limit_s: float) -> Exit:
        """As `launching.run`."""
        began = time.monotonic()
        log = work / "log"
        log.unlink(missing_ok=True)
        variables = environment(start, work)
        if start.processes > 1:
            variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "ACCELERATE_USE_CPU": "true"}
        request = {
            "recorder": str(RECORDER),
            "order": str(order),
            "processes": start.processes,
            "environment": variables,
            "log": str(log),
            "limit_s": limit_s + 10,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        status = json.loads(self._process.stdout.readline())["status"]
        return Exit(status, log.read_text(errors="replace"), time.monotonic() - began)

    def close(self) -> None:
        """End it."""
        self._process.stdin.close()
        try:
            self._process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:  # a program has left a thread in it
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
