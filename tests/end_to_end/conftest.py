"""Runs the scripts of `fixtures/` for the tests: one launch of two processes for all of them.

With FIXTURES_ON=gpu they run on a GPU: the two processes are launched as two machines, so one GPU is enough for both.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))  # test files import `cases`
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))

from executions import PATH, PATIENCE_S, STAGE, Ran, put
from ranks import apart

from migrate.verify.launching import free_port

ON_GPU = os.environ.get("FIXTURES_ON") == "gpu"


class Stage:
    """`runtime launch` with the two processes that run what they are asked to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._done: dict[Any, list[Ran]] = {}
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": PATH}
        with (folder / "log").open("wb") as log:
            self._launchers = [
                subprocess.Popen(
                    [sys.executable, "-m", "runtime", "launch", *options, str(STAGE), str(folder)],
                    env={**environment, **own},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd=folder,
                )
                for options, own in (_two_machines() if ON_GPU else [(["--cpu", "-n", "2"], {})])
            ]

    def run(self, script: Path, arguments: list[str], processes: int, *, launched: bool = False) -> list[Ran]:
        """How the script ended on each rank. The same run is done once."""
        key = (script, tuple(arguments), processes)
        if key not in self._done:
            request = {"script": str(script), "arguments": arguments, "processes": processes, "port": free_port()}
            request["launched"] = launched
            put(self._folder, self._number, request)
            self._done[key] = [self._result(self._number, rank) for rank in range(processes)]
            self._number += 1
        return self._done[key]

    def _result(self, number: int, rank: int) -> Ran:
        path = self._folder / f"result-{number}-{rank}.json"
        end = time.monotonic() + PATIENCE_S
        while not path.exists():
            has_ended = any(launcher.poll() is not None for launcher in self._launchers)
            if has_ended or time.monotonic() > end:
                raise AssertionError(f"no answer from rank {rank}:\n{(self._folder / 'log').read_text()}")
            time.sleep(0.005)
        return Ran(**json.loads(path.read_text()))

    def close(self) -> None:
        """End the launch; it must end well."""
        put(self._folder, self._number, None)
        try:
            statuses = {launcher.wait(PATIENCE_S) for launcher in self._launchers}
        except subprocess.TimeoutExpired:
            for launcher in self._launchers:
                os.killpg(launcher.pid, signal.SIGTERM)
            raise
        log = (self._folder / "log").read_text()
        assert (statuses, log) == ({0}, ""), log


def _two_machines() -> list[tuple[list[str], dict[str, str]]]:
    """The options and variables of two launches that share this machine's GPU and are joined by NCCL."""
    place = ["--num_machines", "2", "--main_process_ip", "127.0.0.1", "--main_process_port", free_port()]
    nvml = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}  # a process that has opened a GPU has no forks that can
    return [([*place, "--machine_rank", str(rank)], {**apart(rank), **nvml}) for rank in range(2)]


@pytest.fixture(scope="session")
def stage(tmp_path_factory):
    opened = Stage(tmp_path_factory.mktemp("stage"))
    yield opened
    opened.close()
