"""torch_xla on XLA's CPU client: one process, also with several virtual devices, computes what the CPU computes.

`make test-xla` makes an environment with torch_xla, and runs these; it is too large for continuous integration.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("TORCH_XLA_PYTHON")
#: One process on the CPU, one XLA device, four of them.
CPU, ONE, FOUR = {"ACCELERATE_USE_CPU": "true"}, {"PJRT_DEVICE": "CPU"}, {"PJRT_DEVICE": "CPU", "CPU_NUM_DEVICES": "4"}

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs torch_xla: make test-xla")


def run(folder, variables, script, *arguments):
    folder.mkdir(parents=True, exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PJRT_", "ACCELERATE_"))}
    environ = {**inherited, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(
        [PYTHON, str(script), *arguments], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


def computed(folder, variables, precision="no"):
    done = run(folder, variables, ROOT / "tests/xla/program.py", str(folder / "state"), precision)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("variables", [ONE, FOUR], ids=["one device", "four devices"])
def test_a_training_is_that_of_the_cpu(tmp_path, variables):
    expected, own = computed(tmp_path / "cpu", CPU), computed(tmp_path / "xla", variables)
    assert (expected["device"], own["device"], own["type"]) == ("cpu", "xla", "XLA")
    assert own["losses"] == pytest.approx(expected["losses"], rel=0, abs=2e-6)
    assert (own["hits"], own["keys"]) == (expected["hits"], expected["keys"])
    assert own["saved"] == ["cpu"]
    assert own["repeats"]
    assert own["is_shared"]


def test_bf16_runs(tmp_path):
    expected, own = computed(tmp_path / "cpu", CPU, "bf16"), computed(tmp_path / "xla", ONE, "bf16")
    assert own["losses"] == pytest.approx(expected["losses"], rel=0, abs=5e-2)  # of two ways to round to 8 bits


def test_several_processes_are_refused(tmp_path):
    script = tmp_path / "several.py"
    script.write_text("from runtime import Accelerator\nAccelerator()\n")
    several = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    done = run(tmp_path, ONE | several, script)
    assert done.returncode == 1
    assert "WorldError: 2 processes were started, and torch_xla has all chips" in done.stderr


def test_it_is_not_used_unasked(tmp_path):
    script = tmp_path / "which.py"
    script.write_text(
        "from runtime import Accelerator, is_torch_xla_available as found\n"
        "print(Accelerator().device, found(), found(check_is_tpu=True))\n"
    )
    assert run(tmp_path, {}, script).stdout == "cpu False False\n"
    assert run(tmp_path, ONE | {"USE_TORCH_XLA": "0"}, script).stdout == "cpu False False\n"
    assert run(tmp_path, ONE, script).stdout == "xla:0 True False\n"
