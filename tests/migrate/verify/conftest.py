"""Verifications of small programs, in processes that have imported torch already."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from migrate import pipeline
from migrate.options import Options
from migrate.verify.verify import verify
from migrate.verify.wish import wish

sys.path.insert(0, str(Path(__file__).resolve().parent))  # test files import `runner`
from runner import Zygote

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.arange(96.0).reshape(24, 4).sin()
y = x.sum(1, keepdim=True)
train_loader = DataLoader(TensorDataset(x[:18], y[:18]), batch_size=4, shuffle=True)
test_loader = DataLoader(TensorDataset(x[18:], y[18:]), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

for epoch in range(3):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for inputs, targets in test_loader:
            total += nn.functional.mse_loss(model(inputs), targets, reduction="sum").item()
    print(f"epoch {epoch} error {total / 6:.6f}")
    torch.save(model.state_dict(), "model.pt")
"""


@pytest.fixture
def program():
    """A whole small training."""
    return PROGRAM


@pytest.fixture(scope="session")
def zygote():
    opened = Zygote()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def converted(tmp_path_factory):
    """What becomes of the program."""
    path = tmp_path_factory.mktemp("program") / "train.py"
    path.write_text(PROGRAM)
    (change,) = pipeline.run([str(path)], Options()).changes
    return change.new.decode()


@pytest.fixture
def prove(zygote, tmp_path, monkeypatch):
    """Verify a program against what is said to be its conversion: by default, one that changes nothing."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(program=PROGRAM, converted=None, **options):
        (folder / "train.py").write_text(program)
        changes = {"train.py": (converted or program).encode()}
        options = {"processes": (1,), "limit_s": 30.0, **options}
        return verify(wish("train.py", changes, **options), start=zygote.run)

    run.folder, run.program = folder, PROGRAM
    return run
