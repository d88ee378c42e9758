"""For the tests of the training runtime: `ranks` can be imported, and no test leaves a process group or variables."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # test files import `ranks`, also in the processes they start

PLACEMENT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture(autouse=True)
def _scrubbed_environment(monkeypatch):
    """Settings of the machine that runs the tests do not reach them."""
    for name in list(os.environ):
        if name.startswith("ACCELERATE_") or name in PLACEMENT:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _nothing_left_behind():
    yield
    distributed = sys.modules.get("torch.distributed")
    assert distributed is None or not distributed.is_initialized()
