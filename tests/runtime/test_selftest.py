"""`runtime test`: on two processes, and each of its checks where something is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from runtime import Accelerator
from runtime.launch import selftest

ROOT = Path(__file__).resolve().parents[2]
CHECKS = dict(selftest.CHECKS)


@pytest.mark.long
def test_two_processes_pass(tmp_path):
    done = subprocess.run(
        [sys.executable, *"-m runtime test --cpu -n 2 --mixed_precision bf16".split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *checks, last = done.stdout.splitlines()
    assert first == "2 processes, cpu, gloo"
    assert [line.split()[0] for line in checks] == ["ok"] * 6 + ["skipped"]
    assert "fp16" in checks[-1]
    assert last.startswith("6 passed, 1 skipped, none failed")
    assert list(tmp_path.iterdir()) == [], "nothing is left"


@pytest.fixture
def accelerator():
    return Accelerator(cpu=True, mixed_precision="no", split_batches=True)


WRONG = {
    "collectives": {"gather": lambda value: value + 1},
    "training": {"backward": lambda loss: (0.5 * loss).backward()},
    "evaluation": {"gather_for_metrics": lambda batch: batch[:3]},
    "save and load": {"load_state": lambda path: None},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(accelerator, monkeypatch, name, capsys):
    assert selftest._run(accelerator, name, CHECKS[name])
    assert capsys.readouterr().out.startswith(f"ok       {name} ")
    for method, instead in WRONG[name].items():
        monkeypatch.setattr(accelerator, method, instead)
    with pytest.raises(SystemExit, match=rf"FAILED   {name}, on process 0: AssertionError: "):
        selftest._run(accelerator, name, CHECKS[name])


def test_a_loss_that_does_not_fall_is_found(accelerator, monkeypatch):
    assert CHECKS["mixed_precision=no"](accelerator).startswith("the loss falls from")
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self, closure=None: None)
    with pytest.raises(AssertionError, match="the loss does not fall"):
        CHECKS["mixed_precision=no"](accelerator)
