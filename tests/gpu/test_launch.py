"""Launching on a GPU: the commands, as they are typed."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
import torch
from on_gpu import DEVICE, ON_CPU, ROOT, launched

LIMIT_S = 120
CPU = ["--cpu"] if ON_CPU else []

HELLO = """
import torch
from runtime import Accelerator
accelerator = Accelerator()
x = torch.full((3,), float(accelerator.process_index + 1), device=accelerator.device)
total = accelerator.reduce(x).tolist()
group = torch.distributed.get_backend() if torch.distributed.is_initialized() else "alone"
accelerator.print(accelerator.device.type, accelerator.num_processes, group, total)
accelerator.end_training()
"""

RESUMED = """
import os, signal, sys
from pathlib import Path
import torch
from runtime import Accelerator, ProjectConfiguration
place = Path(sys.argv[1])
accelerator = Accelerator(
    mixed_precision=sys.argv[2],
    project_config=ProjectConfiguration(str(place), automatic_checkpoint_naming=True, total_limit=2),
)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Dropout(0.5), torch.nn.Linear(32, 1))
data = torch.utils.data.TensorDataset(torch.randn(80, 4), torch.randn(80, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
class Progress:
    done = 0
    def state_dict(self):
        return {"done": self.done}
    def load_state_dict(self, state):
        self.done = state["done"]

progress = Progress()
accelerator.register_for_checkpointing(progress)
if list(place.glob("checkpoints/checkpoint_*")):
    accelerator.load_state()
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    progress.done += 1
    print(progress.done, loss.item(), flush=True)
    accelerator.save_state()
    if progress.done == 5 and "kill" in sys.argv and int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) == 0:
        os.kill(os.getpid(), signal.SIGKILL)
accelerator.end_training()
"""


GUARDED = """
import torch
from runtime import Accelerator

accelerator = Accelerator(debug=True)
if accelerator.is_main_process:
    accelerator.gather(torch.ones(2, device=accelerator.device))
"""

CELL = """
import torch
from runtime import Accelerator, notebook_launcher

def training(rate):
    accelerator = Accelerator()
    model = accelerator.prepare(torch.nn.Linear(4, 1))
    optimizer = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=rate))
    accelerator.backward(model(torch.ones(2, 4, device=accelerator.device)).sum())
    optimizer.step()
    accelerator.print(accelerator.device.type, accelerator.num_processes, model.weight.dtype, accelerator.native_amp)

notebook_launcher(training, (0.1,), num_processes=1, mixed_precision="fp16")
"""


def python(folder, *words, **variables):
    """How a command of this Python ends."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def command(folder, *words):
    return python(folder, "-m", "runtime", *words)


def test_without_a_word_a_script_gets_the_gpu(tmp_path):
    (tmp_path / "hello.py").write_text(HELLO)
    assert launched(tmp_path, 1, "hello.py") == [(f"{DEVICE.type} 1 alone [1.0, 1.0, 1.0]\n", "", 0)]


def test_a_notebook_trains_on_the_gpu(tmp_path):
    done = python(tmp_path, "-c", CELL, **({"ACCELERATE_USE_CPU": "true"} if ON_CPU else {}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{DEVICE.type} 1 torch.float32 {not ON_CPU}"


@pytest.mark.skipif(ON_CPU, reason="a CPU can have any number")
def test_more_processes_than_gpus_are_refused(tmp_path):
    (tmp_path / "hello.py").write_text(HELLO)
    count = torch.cuda.device_count()
    done = command(tmp_path, "launch", "-n", str(count + 1), "hello.py")
    assert done.returncode != 0
    assert f"has {count} GPU" in done.stderr


def test_two_machines_with_a_gpu_each_are_joined(tmp_path):
    (tmp_path / "hello.py").write_text(HELLO)
    ends = launched(tmp_path, 2, "hello.py")
    group = "gloo" if ON_CPU else "nccl"
    assert ends == [(f"{DEVICE.type} 2 {group} [3.0, 3.0, 3.0]\n", "", 0)] * 2  # each machine has a main process


def test_a_process_that_does_not_come_is_named_in_seconds(tmp_path):
    (tmp_path / "guarded.py").write_text(GUARDED)
    began = time.monotonic()
    (_, errors, status), _ = launched(tmp_path, 2, "guarded.py")
    assert status != 0
    assert "rank 1" in errors
    assert "guarded.py:7" in errors
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("precision", ["no", "fp16"])
def test_a_killed_training_is_started_again_and_has_the_losses_of_one_that_was_not(tmp_path, precision):
    (tmp_path / "train.py").write_text(RESUMED)
    whole = command(tmp_path, "launch", *CPU, "train.py", str(tmp_path / "whole"), precision)
    assert whole.returncode == 0, whole.stderr
    killed = command(
        tmp_path, "launch", *CPU, "--max_restarts", "1", "train.py", str(tmp_path / "killed"), precision, "kill"
    )
    assert killed.returncode == 0, killed.stderr
    assert killed.stdout == whole.stdout
    assert len(whole.stdout.splitlines()) == 10


def test_the_test_of_a_setup_passes(tmp_path):
    done = command(tmp_path, "test", *CPU)
    assert done.returncode == 0, done.stdout + done.stderr
    first, *_, last = done.stdout.splitlines()
    assert first == f"1 process, {DEVICE.type}, no process group"
    assert "none failed" in last


def test_the_environment_names_the_gpu(tmp_path):
    done = command(tmp_path, "env")
    assert done.returncode == 0, done.stderr
    if not ON_CPU:
        assert torch.cuda.get_device_name(0) in done.stdout
