"""What the main process removes, and all processes look for below: they wait for it."""

import pytest

PROGRAM = """\
import os
import shutil
from pathlib import Path
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

folder = "runs"
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{gone}
{looked}
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{end}
"""
WAIT = "accelerator.wait_for_everyone()\n"
LOAD = 'if os.path.exists(os.path.join(folder, "last.pt")):\n    model.load_state_dict(torch.load("runs/last.pt"))'


def converted(convert_text, gone, looked, end=""):
    return convert_text(PROGRAM.format(gone=gone, looked=looked, end=end))[1]


LOOKED = {
    "a file in a folder": ("shutil.rmtree(folder, ignore_errors=True)", LOAD, "if os.path.exists(os.path.join"),
    "if it was there": (
        "if os.path.exists(folder):\n    shutil.rmtree(folder)",
        LOAD,
        "if os.path.exists(os.path.join",
    ),
    "a file": ('os.remove("stop")', 'if os.path.isfile("stop"):\n    raise SystemExit', 'if os.path.isfile("stop"):'),
    "by a method": ('os.remove("stop")', 'there = Path("stop").exists()', 'there = Path("stop").exists()'),
    "what a folder has": ("shutil.rmtree(folder)", "found = os.listdir(folder)", "found = os.listdir(folder)"),
}


@pytest.mark.parametrize("name", LOOKED)
def test_all_wait_before_they_look(convert_text, name):
    gone, looked, place = LOOKED[name]

    assert WAIT + place in converted(convert_text, gone, looked)


OTHERS = {
    "another file": ('os.remove("stop")', 'there = Path("start").exists()', ""),
    "above": ('there = Path("stop").exists()', "print(there)", 'os.remove("stop")'),
    "a folder that is made anew": (
        "shutil.rmtree(folder, ignore_errors=True)",
        "if not os.path.exists(folder):\n    os.makedirs(folder)",
        "",
    ),
    "one process looks": ('os.remove("stop")', 'print(Path("stop").exists())', ""),
}


@pytest.mark.parametrize("name", OTHERS)
def test_there_is_no_wait_for_others(convert_text, name):
    assert WAIT not in converted(convert_text, *OTHERS[name])


def test_none_waits_where_training_keeps_them_together(convert_text):
    result = converted(convert_text, "shutil.rmtree(folder, ignore_errors=True)", "", "found = os.path.exists(folder)")

    assert WAIT not in result
