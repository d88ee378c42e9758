"""Every converted fixture that runs, on XLA's CPU client: it goes back from the losses that the CPU has.

On one device, and with each batch shared out over four (SPMD), each beside the CPU with the same torch. What torch_xla
2.9 cannot do is told in a table, with its reason; that it still cannot is part of the test.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass
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
NEAR, NEAR_BF16 = 1e-4, 1e-2
CASES = {
    case.name: case
    for case in cases()
    if case.table["runnable"] and case.after and case.table.get("target", "runtime") == "runtime"
}
#: Programs that draw on the device, whose generator gives other numbers than the CPU's: losses that are numbers.
DRAWN = {
    "actor-critic-agent", "apex-gan", "device-above-guard", "gan", "given-model-drawn", "infinite-loader",
    "language-model", "model-methods", "unseeded-plateau", "unseeded-stop",
}  # fmt: skip
BF16 = {"amp-kept"}
NO_JAX = "No module named 'jax'"
#: What torch_xla 2.9 does not run, in its words.
REFUSED = {
    ("one device", "amp-flag"): "Cannot set version_counter for inference tensor",
    ("four devices", "amp-flag"): "Cannot set version_counter for inference tensor",
    ("one device", "given-model-retried"): "module 'torch' has no attribute 'xla'",  # torch.utils.checkpoint
    ("four devices", "given-model-retried"): "module 'torch' has no attribute 'xla'",
    ("four devices", "clipping"): NO_JAX,  # the backward of a recurrent layer
    ("four devices", "language-model"): NO_JAX,
}
#: LBFGS asks for numbers inside of its step, each of which is compiled by itself: not done in four minutes.
TOO_SLOW = {"closure", "trained-image"}

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs torch_xla: make test-xla")


@dataclass(frozen=True)
class Ran:
    """How a program ended, and the losses it went back from."""

    status: int
    output: str
    errors: str
    losses: list[float]


class Runner:
    """A process that runs programs on one kind of device, one after the other, each in a fork."""

    def __init__(self, variables: dict[str, str]) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PJRT_", "ACCELERATE_"))}
        self._process = subprocess.Popen(
            [str(PYTHON), str(ROOT / "tests/xla/losses.py")],
            env={**inherited, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, folder: Path, script: Path, arguments: list[str]) -> Ran:
        folder.mkdir(parents=True)
        request = {"folder": str(folder), "script": str(script), "arguments": arguments}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n", "the process that runs programs has ended"
        output, errors = ((folder / name).read_text() for name in ("output", "errors"))
        losses = folder / "losses.json"
        return Ran(
            int((folder / "status").read_text()),
            output,
            errors,
            json.loads(losses.read_text()) if losses.exists() else [],
        )

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="session")
def runners():
    """One for each kind of device."""
    made = {name: Runner(variables) for name, variables in {"cpu": CPU, **DEVICES}.items()}
    yield made
    for runner in made.values():
        runner.close()


@pytest.mark.parametrize("name", CASES)
def test_a_converted_program_has_the_losses_of_the_cpu(tmp_path, runners, name):
    if name in TOO_SLOW:
        pytest.skip("LBFGS on XLA: minutes for a step")
    script, arguments = CASES[name].script("after"), list(CASES[name].table.get("arguments", ()))
    if script.suffix == ".ipynb":
        exported = tmp_path / "notebook.py"
        exported.write_bytes(python_of(script))
        script = exported
    expected = runners["cpu"].run(tmp_path / "cpu", script, arguments)
    assert expected.status == 0, expected.errors
    assert expected.losses, "a training goes back from losses"
    for devices in DEVICES:
        own = runners[devices].run(tmp_path / devices, script, arguments)
        if (devices, name) in REFUSED:
            assert own.status != 0, f"{devices}: it runs now, out of the table"
            assert REFUSED[devices, name] in own.errors
            continue

        assert own.status == 0, f"{devices}: {own.errors}"
        if name in DRAWN:
            assert own.losses, devices
            assert all(map(math.isfinite, own.losses)), devices
            continue

        assert len(own.losses) == len(expected.losses), devices
        near = NEAR_BF16 if name in BF16 else NEAR
        assert own.losses[:FIRST] == pytest.approx(expected.losses[:FIRST], rel=near, abs=near, nan_ok=True), devices
        assert NUMBER.sub("#", own.output) == NUMBER.sub("#", expected.output), devices
