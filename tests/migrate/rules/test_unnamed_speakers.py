"""Files that were not named and print: what they say comes from every process, until they are named, too."""

from pathlib import Path

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from shown import {name}

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64)), batch_size=4)
net = nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    x = x.to(device)
    loss = nn.functional.mse_loss(net(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {name}(i, loss.item())
"""
SHOWN = """
import sys
import time

started = time.time()


def show(step, loss):
    global started
    sys.stdout.write("%d %.4f %.1f" % (step, loss, time.time() - started))
    started = time.time()


def tell(step, loss):
    print(step, loss)


def count(step, loss):
    global started
    started = time.time()
"""


@pytest.fixture
def notes(tmp_path, monkeypatch):
    def given(name, *paths):
        monkeypatch.chdir(tmp_path)
        Path("train.py").write_text(TRAIN.format(name=name), encoding="utf-8")
        Path("shown.py").write_text(SHOWN, encoding="utf-8")
        report = run(["train.py", *paths], Options())
        assert report.changes
        return [finding for finding in report.of(Kind.NOTE) if "every process" in finding.message]

    return given


def test_a_file_that_was_not_named_and_prints_is_told(notes):
    (note,) = notes("show")

    assert note.message == "every process prints or writes what is said in shown.py, which was not named"
    assert note.hint == "name it too: migrate train.py shown.py"


@pytest.mark.parametrize(("name", "paths"), [("show", ["shown.py"]), ("tell", []), ("count", [])])
def test_one_that_is_named_or_guarded_or_says_nothing_is_not(notes, name, paths):
    assert not notes(name, *paths)


@pytest.mark.parametrize(("paths", "is_off"), [([], True), (["shown.py"], False)])
def test_a_run_of_a_service_is_there_for_files_that_were_not_named(tmp_path, monkeypatch, paths, is_off):
    monkeypatch.chdir(tmp_path)
    begun = TRAIN.format(name="show").replace("device =", 'wandb.init(project="x")\ndevice =', 1)
    Path("train.py").write_text("import wandb\n" + begun, encoding="utf-8")
    Path("shown.py").write_text('import wandb\n\n\ndef show(step, loss):\n    wandb.log({"loss": loss})\n', "utf-8")
    (change, *_) = run(["train.py", *paths], Options()).changes
    off = 'wandb.init(project="x", mode=None if accelerator.is_main_process else "disabled")'

    assert (off in change.new.decode()) is is_off
    assert ('if accelerator.is_main_process:\n    wandb.init(project="x")' in change.new.decode()) is not is_off
