"""Loaders over what each process has gathered from its own batches: dealt out again, a part would be trained on."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
questions = DataLoader(TensorDataset(torch.rand(32, 4)), batch_size=8)
data = TensorDataset(torch.rand(32, 4), torch.rand(32, 1))
rows = []


def played(question):
    with torch.no_grad():
        return question[:, None].repeat(1, 4, 1), model(question)


def fit(loader):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


for (question,) in questions:
    {made}
    fit(loader)
"""
OWN = {
    "put into a list": "rows.append(played(question))\n    loader = DataLoader(rows, batch_size=4)",
    "by names": "x, y = played(question)\n    loader = DataLoader(TensorDataset(x[:, 0], y), batch_size=4)",
    "by a loop": (
        "for row in question:\n        rows.append(played(row[None]))\n    loader = DataLoader(rows, batch_size=4)"
    ),
    "written out": "loader = DataLoader([played(row[None]) for row in question], batch_size=4)",
}


@pytest.mark.parametrize("name", OWN)
def test_what_a_process_has_gathered_is_not_dealt_out_again(refused_text, name):
    source = PROGRAM.format(made=OWN[name])
    refused_text(source, "MIG104", "loader = DataLoader", ["its own share"])


OTHER = {
    "all the data": "loader = DataLoader(data, batch_size=4)",
    "made anew": (
        "again = TensorDataset(torch.ones(32, 4), torch.ones(32, 1))\n    loader = DataLoader(again, batch_size=4)"
    ),
}


@pytest.mark.parametrize("name", OTHER)
def test_other_data_are_dealt_out(convert_text, name):
    _, result = convert_text(PROGRAM.format(made=OTHER[name]))

    assert "loader = accelerator.prepare(loader)" in result
