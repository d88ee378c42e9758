"""Two machines: network namespaces with a link between them, which is cut and mended."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 120
IP = shutil.which("ip") or ""

TRAIN = """
import os, sys, time
from datetime import timedelta
from pathlib import Path

import torch
from torch import nn
from runtime import Accelerator, InitProcessGroupKwargs, ProjectConfiguration

place, steps, timeout_s = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
accelerator = Accelerator(
    cpu=True,
    split_batches=True,
    project_config=ProjectConfiguration(str(place), automatic_checkpoint_naming=True, total_limit=2),
    kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(seconds=timeout_s))],
)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
data = torch.utils.data.TensorDataset(torch.randn(4096, 4), torch.randn(4096, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
done = 0
if list(place.glob("checkpoints/checkpoint_*")):
    accelerator.load_state()
    done = int(next(iter(optimizer.state.values()))["step"])
for x, y in loader:
    if done == steps:
        break
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    done += 1
    if done % 4 == 0:
        accelerator.save_state()
    (place / f"rank{accelerator.process_index}").write_text(str(done))
    time.sleep(float(os.environ.get("SLOW", 0)))
if accelerator.is_main_process:
    torch.save(accelerator.unwrap_model(model).state_dict(), place / "model.pt")
accelerator.end_training()
"""


def ip(*words, check=True):
    return subprocess.run([IP, *words], check=check, capture_output=True, text=True)


class Machines:
    """Two of them, 10.231.0.1 and 10.231.0.2, with one folder."""

    def __init__(self, folder, names):
        self.folder, self.names = folder, names
        self.started = []

    def start(self, number, *options, slow=0.0, steps=16, timeout_s=60):
        command = [*"runtime launch --cpu -n 2 --num_machines 2 --main_process_ip 10.231.0.1".split(), *options]
        script = ["train.py", str(self.folder), str(steps), str(timeout_s)]
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "SLOW": str(slow)}
        process = subprocess.Popen(
            [
                IP,
                "netns",
                "exec",
                self.names[number],
                sys.executable,
                "-m",
                *command,
                "--machine_rank",
                str(number),
                *script,
            ],
            cwd=self.folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def link(self, state):
        ip("-n", self.names[1], "link", "set", "wire", state)

    def wait_for_step(self, step, *processes):
        """Until both have made it."""
        deadline = time.monotonic() + LIMIT_S
        marks = [self.folder / f"rank{rank}" for rank in range(2)]
        while not all(mark.exists() and int(mark.read_text() or 0) >= step for mark in marks):
            assert all(process.poll() is None for process in processes), "ended before its time"
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def pull_the_plug(self, number):
        """All that runs on a machine is gone at once, without a word."""
        for pid in ip("netns", "pids", self.names[number]).stdout.split():
            os.kill(int(pid), signal.SIGKILL)


@pytest.fixture
def machines(tmp_path):
    if not IP:
        pytest.skip("needs ip (the package iproute2) to make network namespaces")
    names = [f"runtime-{os.getpid()}-{number}" for number in range(2)]
    made = [ip("netns", "add", name, check=False) for name in names]
    if any(one.returncode for one in made):
        pytest.skip(f"may not make network namespaces: {made[0].stderr.strip()}")
    (tmp_path / "train.py").write_text(TRAIN)
    two = Machines(tmp_path, names)
    try:
        ip(*f"link add name wire netns {names[0]} type veth peer name wire netns {names[1]}".split())
        for number, name in enumerate(names, 1):
            ip("-n", name, "address", "add", f"10.231.0.{number}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield two
    finally:
        for number, name in enumerate(names):
            two.pull_the_plug(number)
            ip("netns", "del", name)
        for process in two.started:
            process.communicate()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The parameters of two processes on one machine, by the number of steps."""
    folder = tmp_path_factory.mktemp("one")
    (folder / "train.py").write_text(TRAIN)
    command = [sys.executable, *"-m runtime launch --cpu -n 2 train.py".split(), str(folder), "16", "60"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=folder, env=environ, check=True, timeout=LIMIT_S)
    return torch.load(folder / "model.pt")


def assert_same(folder, expected):
    found = torch.load(folder / "model.pt")
    assert all(torch.equal(value, found[name]) for name, value in expected.items())


def finish(process):
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def test_two_machines_train_as_one_does(machines, expected):
    both = [machines.start(number) for number in (1, 0)]
    ends = [finish(process) for process in both]
    assert [status for status, _, _ in ends] == [0, 0], ends
    assert_same(machines.folder, expected)


def test_a_cut_link_is_an_error_within_the_timeout(machines):
    both = [machines.start(number, slow=0.05, steps=500, timeout_s=5) for number in (0, 1)]
    machines.wait_for_step(3, *both)
    machines.link("down")
    began = time.monotonic()
    ends = [finish(process) for process in both]
    assert time.monotonic() - began < 60
    for rank, (status, _, err) in enumerate(ends):
        assert status == 1
        assert f"process {rank} of 2 failed with exit status 1" in err
        assert "another process did not answer for 5000 ms" in err
        assert "the link between them cut" in err


def test_a_machine_that_joins_again_goes_on_with_the_others(machines, expected):
    options = ["--rdzv_backend", "c10d", "--max_restarts", "3"]
    first, second = (machines.start(number, *options, slow=0.1) for number in (0, 1))
    machines.wait_for_step(6, first, second)
    machines.pull_the_plug(1)
    time.sleep(1)
    again = machines.start(1, *options)
    ends = [finish(process) for process in (first, again)]
    assert [status for status, _, _ in ends] == [0, 0], ends
    assert second.wait() == -signal.SIGKILL
    assert_same(machines.folder, expected)
