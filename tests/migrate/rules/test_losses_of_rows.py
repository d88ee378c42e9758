"""Losses that keep a number for each sample, `reduction="none"`: another process's are those of other samples."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    data = TensorDataset(torch.ones(8, 2), torch.ones(8).long(), torch.arange(8))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss({told})
    weights, weight = torch.ones(8), 1.0
    for epoch in range(2):
        history = []
        for x, y, index in loader:
            output = model(x)
            {loss}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {step}
        {epoch}


main()
"""
NONE = "reduction='none'"
EACH = "each = criterion(output, y)\n            loss = (each * weights[index]).mean()"
CALLED = "each = nn.functional.cross_entropy(output, y, {})\n            loss = (each * weights[index]).mean()"
SAME = "loss = criterion(output, y) * weights[index]\n            {}\n            loss = loss.mean()"
KEPT = "weights[index] = 0.9 * weights[index] + 0.1 * each.detach()"
ROWS = {
    "by the loss function": {"told": NONE, "loss": EACH, "step": KEPT},
    "as it was said once": {"told": "reduce=False", "loss": EACH, "step": KEPT},
    "by the call": {"loss": CALLED.format(NONE), "step": KEPT},
    "as data": {"told": NONE, "loss": EACH, "step": "weights[index] = each.data"},
    "under one name": {"told": NONE, "loss": SAME.format("weights[index] = loss.detach()")},
    "in a list": {
        "told": NONE,
        "loss": SAME.format("history.append(loss.detach())"),
        "epoch": "print(torch.cat(history).max())",
    },
}


def filled(holes):
    return PROGRAM.format(**{"told": "", "step": "", "epoch": "", **holes})


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_losses_are_no_number_to_take_the_mean_of(convert_text, name):
    report, result = convert_text(filled(ROWS[name]))

    assert "accelerator.prepare(" in result
    assert "accelerator.reduce(" not in result
    assert [finding for finding in report.findings if finding.code == "MIG114" and "process" in finding.message]


NUMBERS = {
    "a mean": {"loss": "loss = weight * criterion(output, y)", "step": "weight = 0.9 * weight + 0.1 * loss.detach()"},
    "said to be one": {
        "told": "reduction='mean'",
        "loss": "loss = weight * criterion(output, y)",
        "step": "weight = 0.9 * weight + 0.1 * loss.detach()",
    },
    "the mean of such rows": {
        "told": NONE,
        "loss": "loss = criterion(output, y)\n            loss = weight * loss.mean()",
        "step": "weight = 0.9 * weight + 0.1 * loss.detach()",
    },
}


@pytest.mark.parametrize("name", NUMBERS)
def test_of_one_number_the_mean_is_taken(convert_text, name):
    _, result = convert_text(filled(NUMBERS[name]))

    assert "weight = 0.9 * weight + 0.1 * accelerator.reduce(loss.detach(), reduction=" in result
