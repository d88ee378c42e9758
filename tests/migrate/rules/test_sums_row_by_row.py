"""Losses that a program adds up row by row: a sum, as `error.sum()` is one, unless it is divided by what there was."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class One(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(2, 3), nn.Linear(3, 1)

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        return self.head(hidden)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(2, 1) for _ in range(2))

    def forward(self, x):
        {heads}


torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 2), torch.randn(16, 1))
loader = DataLoader(data, batch_size=4)
model = {model}
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    output = model(x)
    {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TOLD = "this loss is a sum"
EACH = "loss = 0\n    for o, t in zip(output, y):\n        loss {}\n    {}"


def told(convert_text, loss, model="nn.Linear(2, 1)", heads="return [head(x) for head in self.heads]"):
    report, result = convert_text(PROGRAM.format(loss=loss, model=model, heads=heads))
    assert "accelerator.prepare(" in result
    return [finding for finding in report.findings if TOLD in finding.message]


SUMS = {
    "of losses of rows": "loss = sum(criterion(o, t) for o, t in zip(output, y))",
    "of rows": "loss = sum((output - y).pow(2)).squeeze()",
    "of what stands beside each other": "loss = torch.stack([criterion(o, t) for o, t in zip(output, y)]).sum()",
    "by numbers": "loss = 0\n    for i in range(x.size(0)):\n        loss += criterion(output[i], y[i])",
    "by as many as there are": "loss = sum([criterion(output[i], y[i]) for i in range(len(output))])",
    "in a list": "parts = []\n    for o, t in zip(output, y):\n        parts.append(criterion(o, t))\n"
    "    loss = sum(parts)",
    "anew": EACH.format("= loss + criterion(o, t)", ""),
    "by a number that is written out": EACH.format("+= criterion(o, t)", "loss = loss / 4"),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_loss_that_is_added_up_by_rows_is_a_sum(convert_text, name):
    assert len(told(convert_text, SUMS[name])) == 1


def test_what_a_model_of_ones_own_gives_is_looked_into(convert_text):
    assert len(told(convert_text, SUMS["of losses of rows"], "One()")) == 1


MEANS = {
    "of the sum": "loss = sum(criterion(o, t) for o, t in zip(output, y)) / len(x)",
    "of what stands beside each other": "loss = torch.stack([criterion(o, t) for o, t in zip(output, y)]).mean()",
    "in place": EACH.format("+= criterion(o, t)", "loss /= len(output)"),
    "under its name": EACH.format("+= criterion(o, t)", "loss = loss / x.size(0)"),
    "under another name": "total = 0\n    for o, t in zip(output, y):\n        total += criterion(o, t)\n"
    "    loss = total / x.size(0)",
}


@pytest.mark.parametrize("name", MEANS)
def test_a_mean_of_rows_is_one(convert_text, name):
    assert not told(convert_text, MEANS[name])


HEADS = {
    "a list": "return [head(x) for head in self.heads]",
    "a tuple": "return self.heads[0](x), self.heads[1](x)",
    "a list that grows": "given = []\n        for head in self.heads:\n            given.append(head(x))\n"
    "        return given",
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("loss", ["criterion(o, y) for o in output", "criterion(o, t) for o, t in zip(output, (y, y))"])
def test_several_outputs_of_a_model_are_no_rows(convert_text, name, loss):
    assert not told(convert_text, f"loss = sum({loss})", "Heads()", HEADS[name])
