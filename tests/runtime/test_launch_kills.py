"""A run whose workers are killed again and again ends with the parameters of one that nobody disturbed."""

import os
import random
import signal
import time

import pytest
import torch

pytestmark = pytest.mark.long

KILLS = 20
LIMIT_S = 300

TRAIN = """
import os, sys, time
from pathlib import Path

place = Path(sys.argv[1])
mark = place / f"{os.environ['TORCHELASTIC_RESTART_COUNT']}-{os.environ['RANK']}"
mark.with_suffix(".part").write_text(str(os.getpid()))
mark.with_suffix(".part").rename(mark)

import torch
from torch import nn
from runtime import Accelerator, ProjectConfiguration

class Progress:
    epoch = 0

    def state_dict(self):
        return {"epoch": self.epoch}

    def load_state_dict(self, state):
        self.epoch = state["epoch"]

project = ProjectConfiguration(str(place), automatic_checkpoint_naming=True, total_limit=2)
accelerator = Accelerator(cpu=True, split_batches=True, project_config=project)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
progress = Progress()
accelerator.register_for_checkpointing(progress)
if list(place.glob("checkpoints/checkpoint_*")):
    accelerator.load_state()
steps = 0
for progress.epoch in range(progress.epoch, 12):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        steps += 1
        if steps % 4 == 0:
            accelerator.save_state()
    while progress.epoch == 11 and not (place / "enough").exists():
        time.sleep(0.01)
if accelerator.is_main_process:
    torch.save(accelerator.unwrap_model(model).state_dict(), place / "model.pt")
accelerator.end_training()
"""


@pytest.fixture
def start(launched, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    options = ("--cpu", "-n", "2", "--max_restarts", str(KILLS))
    return lambda place: launched(tmp_path, *options, "train.py", str(place))


def worker(place, attempt, rank, process):
    """The process number of a worker, once it runs."""
    mark = place / f"{attempt}-{rank}"
    deadline = time.monotonic() + 60
    while not mark.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, f"attempt {attempt} has not begun"
        time.sleep(0.005)
    return int(mark.read_text())


def test_twenty_kills_change_nothing(start, tmp_path):
    calm, disturbed = tmp_path / "calm", tmp_path / "disturbed"
    for place in (calm, disturbed):
        place.mkdir()
    (calm / "enough").touch()
    process = start(calm)
    assert process.wait(LIMIT_S) == 0, process.communicate()[1]

    moments = random.Random(0)  # noqa: S311  the same moments in every run
    process = start(disturbed)
    for attempt in range(KILLS):
        victim = worker(disturbed, attempt, moments.randrange(2), process)
        time.sleep(moments.choice((0.1, 1.0)) * moments.random())  # while it starts, loads, trains, saves
        os.kill(victim, signal.SIGKILL)
    (disturbed / "enough").touch()
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert err.count("was killed by SIGKILL") == KILLS

    expected, found = (torch.load(place / "model.pt") for place in (calm, disturbed))
    assert all(torch.equal(value, found[name]) for name, value in expected.items())
