"""Accelerate's own test scripts, run on the runtime. They need the real package for `accelerate.test_utils`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from alias import package_folder

ROOT = Path(__file__).resolve().parents[2]
ALIAS = Path(__file__).with_name("alias.py")
WHEEL = {name: os.environ[name] for name in ("ACCELERATE_WHEEL",) if name in os.environ}  # tests do not see it
ENDS_WITH = {"test_ops": "testing sending tensors across devices", "test_script": "**Test reinstantiated state**"}


@pytest.mark.skipif(package_folder() is None, reason="accelerate is not installed, and ACCELERATE_WHEEL names no wheel")
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("script", sorted(ENDS_WITH))
def test_scripts_of_accelerate_pass(script, processes, tmp_path):
    launch = [sys.executable, "-m", "runtime", "launch", "--cpu", "-n", str(processes)]
    done = subprocess.run(
        [*launch, str(ALIAS), f"accelerate.test_utils.scripts.{script}"],
        cwd=tmp_path,
        env={**os.environ, **WHEEL, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert ENDS_WITH[script] in done.stdout
