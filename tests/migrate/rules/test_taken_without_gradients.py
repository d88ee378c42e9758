"""Batches that are taken one by one while gradients are off, and trained on behind that."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
loader = DataLoader(rows, batch_size=4, shuffle=True)
held = DataLoader(rows, batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    batches = iter(loader)
    others = iter(held)
    for step in range(len(loader)):
        {taken}
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {after}
"""
TAKEN = {
    "under no_grad": "with torch.no_grad():\n            x, y = next(batches)",
    "among other contexts": "with open('log') as log, torch.no_grad():\n            x, y = next(batches)",
    "and made anew": "with torch.no_grad():\n            x, y = next(batches)\n            x = x.float()",
}
EVALUATED = "with torch.no_grad():\n            a, b = next(others)\n            print(model(a))"


def prepared(convert_text, taken, after="pass"):
    _, text = convert_text(PROGRAM.format(taken=taken, after=after))
    line = next(line for line in text.splitlines() if ".prepare(" in line)
    return line.partition(" = ")[0].split(", ")


@pytest.mark.parametrize("name", TAKEN)
def test_they_are_shared_out(convert_text, name):
    assert "loader" in prepared(convert_text, TAKEN[name])


def test_what_is_evaluated_there_is_no_training_data(convert_text):
    names = prepared(convert_text, TAKEN["under no_grad"], EVALUATED)

    assert "loader" in names
    assert "held" not in names


def test_a_pass_that_begins_there_is_an_evaluation(convert_text):
    taken = "with torch.no_grad():\n            x, y = next(iter(loader))"

    assert "loader" not in prepared(convert_text, taken)
