"""On a GPU, runs take kernels that repeat themselves. What that sets can be seen without one."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

SCRIPT = """
import torch
from migrate.verify.recorder import kernels

kernels.repeat_themselves()
torch.backends.cudnn.benchmark = True  # as scripts say
print(torch.backends.cudnn.benchmark)
print(torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
torch.use_deterministic_algorithms(False)
print(torch.are_deterministic_algorithms_enabled())
"""


def test_a_script_that_asks_for_speed_still_repeats_itself():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["False", "True", "True", "False"]
