"""Every converted fixture that runs, on XLA's CPU client: it goes back from the losses that the CPU has.

On one device, and with each batch shared out over four (SPMD), each beside the CPU with the same torch. What torch_xla
2.9 cannot do is told in a table, with its reason; that it still cannot is part of the test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "end_to_end"))
from cases import cases, python_of  # noqa: E402

PYTHON = os.environ.get("TORCH_XLA_PYTHON")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+]?\b(?:nan|inf)\b")
CPU = {"ACCELERATE_USE_CPU": "true"}
DEVICES = {
    "one device": {"PJRT_DEVICE": "CPU"},
    "four devices": {"PJRT_DEVICE": "CPU", "CPU_NUM_DEVICES": "4"},
}
FIRST = 8  # losses that must be near: later ones drift apart as sums in another order do, in GANs fast
NEAR, DRIFT = 2e-5, 2e-3
LIMIT_S = 240
CASES = {
    case.name: case
    for case in cases()
    if case.table["runnable"] and case.after and case.table.get("target", "runtime") == "runtime"
}
#: What does not run there, by the words of who refuses it.
REFUSED: dict[tuple[str, str], str] = {}

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs torch_xla: make test-xla")


def run(folder, case, variables):
    """How a program ended, and the losses it went back from."""
    folder.mkdir(parents=True)
    script = case.script("after")
    if script.suffix == ".ipynb":
        (folder / "notebook.py").write_bytes(python_of(script))
        script = folder / "notebook.py"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PJRT_", "ACCELERATE_"))}
    environ = {**inherited, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    command = [PYTHON, str(ROOT / "tests/xla/losses.py"), "losses.json", str(script), *case.table.get("arguments", ())]
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    written = folder / "losses.json"
    return done, json.loads(written.read_text()) if written.exists() else []


@pytest.mark.parametrize("name", CASES)
def test_a_converted_program_has_the_losses_of_the_cpu(tmp_path, name):
    case = CASES[name]
    expected, losses = run(tmp_path / "cpu", case, CPU)
    assert expected.returncode == 0, expected.stderr
    assert losses, "a training goes back from losses"
    for devices, variables in DEVICES.items():
        own, own_losses = run(tmp_path / devices, case, variables)
        if (devices, name) in REFUSED:
            assert own.returncode != 0, f"{devices}: it runs now, out of the table"
            assert REFUSED[devices, name] in own.stderr
            continue

        assert own.returncode == 0, f"{devices}: {own.stderr}"
        assert len(own_losses) == len(losses), devices
        assert own_losses[:FIRST] == pytest.approx(losses[:FIRST], rel=NEAR, abs=NEAR, nan_ok=True), devices
        assert NUMBER.sub("#", own.stdout) == NUMBER.sub("#", expected.stdout), devices
