"""For the tests of the training runtime: `ranks` can be imported, and launches do not outlive their test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

sys.path.insert(0, str(Path(__file__).parent))  # test files import `ranks`, also in the processes they start


@pytest.fixture
def launched():
    """Starts `runtime launch` in a folder; what still runs at the end of the test is killed."""
    started = []

    def start(folder, *arguments, **variables):
        process = subprocess.Popen(
            [sys.executable, "-m", "runtime", "launch", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
