"""Commands in functions that another script runs, too: they stay as they are, and every process runs them."""

from pathlib import Path

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from official import score

loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64, 1)), batch_size=4)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(score())
"""
OFFICIAL = """
import os
import subprocess


def score():
    {command}
    with open("result.txt") as f:
        return float(f.read())


if __name__ == "__main__":
    print(score())
"""
COMMANDS = {
    "a command": ('os.system("perl scorer.pl answers.txt > result.txt")', True),
    "a process": ('subprocess.run(["perl", "scorer.pl"])', True),
    "one that is asked": ('kept = subprocess.check_output(["ls"])', False),
    "one that is only read": ('kept = os.path.exists("result.txt")', False),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_a_function_that_its_own_script_runs_too_is_said(tmp_path, monkeypatch, name):
    command, is_said = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(TRAIN, encoding="utf-8")
    Path("official.py").write_text(OFFICIAL.format(command=command), encoding="utf-8")
    report = run(["train.py", "official.py"], Options())

    assert [change.path for change in report.changes] == ["train.py"]
    said = [note for note in report.of(Kind.NOTE) if note.message == "every process runs this command"]
    assert [(note.path, note.line) for note in said] == ([("official.py", 7)] if is_said else [])
