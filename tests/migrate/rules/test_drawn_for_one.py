"""What all processes draw alike, in statements that only the main process runs."""

import pytest

DRAWN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


class Source(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, z):
        return self.layer(z)

    def samples(self, n):
        with torch.no_grad():
            return self.layer(torch.randn(n, 2))


torch.manual_seed(0)
writer = SummaryWriter("log")
model = Source()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{loader}
for step, x in enumerate({batches}):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    writer.add_scalar("loss", loss.item(), step)
    writer.add_image("samples", {drawn}, step)
"""
DRAWS = {"by a method of the model": "model.samples(4)", "at once": "torch.randn(3)"}


@pytest.mark.parametrize("drawn", DRAWS)
def test_what_all_draw_alike_is_drawn_by_all_where_one_writes_it(convert_text, drawn):
    _, result = convert_text(DRAWN.format(loader="", batches="torch.randn(8, 4, 2)", drawn=DRAWS[drawn]))

    lines = [line.strip() for line in result.splitlines()]
    (drawing,) = [at for at, line in enumerate(lines) if line.startswith("result = ")]
    assert "samples(4)" in lines[drawing] or "randn(3" in lines[drawing]
    assert lines[drawing + 1 :] == ["if accelerator.is_main_process:", 'writer.add_image("samples", result, step)']


def test_where_a_loader_deals_the_data_out_processes_draw_apart_anyway(convert_text):
    loader = "loader = DataLoader(torch.ones(8, 2), batch_size=4)"
    _, result = convert_text(DRAWN.format(loader=loader, batches="loader", drawn="torch.randn(3)"))

    assert "result = " not in result


SHOWN = """
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(0)
rows = np.zeros((8, 3))
{first}
{second}
loader = DataLoader(TensorDataset(torch.tensor(train)), batch_size=4)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
LOOP = "for row in np.random.choice(len(rows), 3):"
SHOW = f"{LOOP}\n    plt.imshow(rows[row])"
GUARDED = "if accelerator.is_main_process:\n    " + SHOW.replace("\n", "\n    ")
SPLIT = "train, rest = train_test_split(rows)"


def test_what_draws_above_a_split_is_run_by_all(convert_text):
    _, result = convert_text(SHOWN.format(first=SHOW, second=SPLIT))

    assert f"\n{LOOP}\n    if accelerator.is_main_process:\n        plt.imshow(rows[row])" in result


@pytest.mark.parametrize(
    ("first", "second"),
    [(SPLIT, SHOW), (SHOW, "train, rest = train_test_split(rows, random_state=1)")],
    ids=["below the split", "a split with a seed of its own"],
)
def test_what_draws_where_no_data_are_chosen_below_is_left_to_one(convert_text, first, second):
    _, result = convert_text(SHOWN.format(first=first, second=second))

    assert GUARDED in result


PASSES = """
import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def show(loader):
{body}
    plt.savefig("shown")


torch.manual_seed(0)
rows = TensorDataset(torch.ones(8, 3))
{first}
{second}
loader = DataLoader(train, batch_size=4)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
PASS = {
    "a batch": "    plt.imshow(next(iter(loader))[0])",
    "all batches": "    for (x,) in loader:\n        plt.imshow(x)",
}
LOOK = "show(DataLoader(rows, batch_size=4))"
CHOICE = "train, rest = random_split(rows, [4, 4])"


@pytest.mark.parametrize("name", PASS)
def test_a_pass_over_a_loader_draws_from_the_stream_that_splits(convert_text, name):
    _, result = convert_text(PASSES.format(body=PASS[name], first=LOOK, second=CHOICE))

    assert f"\n{LOOK}\n" in result
    assert "    if accelerator.is_main_process:\n        plt." in result


EACH = "for (x,) in DataLoader(rows, batch_size=4):\n    plt.imshow(x)"


@pytest.mark.parametrize("is_above", [True, False])
def test_a_pass_below_the_split_is_left_to_one(convert_text, is_above):
    first, second = (EACH, CHOICE) if is_above else (CHOICE, EACH)
    _, result = convert_text(PASSES.format(body="    pass", first=first, second=second))
    guarded = "if accelerator.is_main_process:\n    " + EACH.replace("\n", "\n    ")

    assert (guarded in result) == (not is_above)
