"""A folder that must not be there is made when all processes know that it is not."""

import pytest

PROGRAM = """
import os
import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
out = Path("runs")
MADE
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
    loss.backward()
    optimizer.step()
"""
WAIT = "accelerator.wait_for_everyone()"


@pytest.fixture
def made(convert_text):
    def convert(text):
        return convert_text(PROGRAM.replace("MADE", text).lstrip())[1]

    return convert


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            "if os.path.exists(out):\n    raise FileExistsError(out)\nos.makedirs(out)",
            f"{WAIT}\nif accelerator.is_main_process:\n    os.makedirs(out)",
        ),
        (
            "if out.exists():\n    sys.exit('there is one')\nelse:\n    os.mkdir(out)",
            f"else:\n    {WAIT}\n    os.makedirs(out, exist_ok=True)",
        ),
        (
            "if os.path.isdir(out):\n    if input() != 'y':\n        sys.exit()\nos.makedirs(out, exist_ok=True)",
            f"{WAIT}\nos.makedirs(out, exist_ok=True)",
        ),
        (
            "if not out.is_dir():\n    print('new')\n    out.mkdir()\nelse:\n    sys.exit()",
            f"{WAIT}\n    out.mkdir(exist_ok=True)",
        ),
        (
            "if not os.path.exists(out):\n    os.makedirs(out)\nelif os.listdir(out):\n    raise FileExistsError(out)",
            f"\nif not os.path.exists(out):\n    {WAIT}\n    os.makedirs(out, exist_ok=True)\nelif os.listdir(out):",
        ),
    ],
)
def test_all_ask_before_one_makes_the_folder(made, text, after):
    assert after in made(text)


@pytest.mark.parametrize(
    "text",
    [
        "if not os.path.exists(out):\n    os.makedirs(out)",
        "if os.path.exists(out):\n    print('there')\nos.makedirs(out, exist_ok=True)",
        "if os.path.exists('data'):\n    sys.exit()\nos.makedirs(out)",
        "os.makedirs(out)\nif os.path.exists(out):\n    print(out)",
    ],
)
def test_where_nobody_leaves_by_what_is_there_nobody_waits(made, text):
    assert WAIT not in made(text)
