"""Tests of the runtime on a GPU; skipped where there is none.

One GPU is enough: where two processes are needed, each is told that it is alone on its machine (`ranks.apart`), and so
they share it, joined by NCCL. `GPU_TESTS_ON=cpu` runs them on the CPU and gloo, to see whether the tests are right.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "runtime"):  # test files import `on_gpu` and `ranks`
    sys.path.insert(0, str(folder))
# cuBLAS computes the same in every run only with a workspace of its own.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def pytest_collection_modifyitems(items):
    missing = os.environ.get("GPU_TESTS_ON") != "cpu" and not torch.cuda.is_available()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if missing:
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture(autouse=True)
def deterministic():
    """A plain program and a converted one can be compared to the last bit."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
