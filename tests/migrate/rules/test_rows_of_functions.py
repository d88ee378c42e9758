"""Rows and dictionaries that functions of the project put together in a step: `history.append(detached(losses))`."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def detached(losses):
    found = dict()
    for name, loss in losses.items():
        found[name] = loss.detach()
    return found


def row(epoch, loss):
    return epoch, loss.item()


def moved(batch):
    return [each.to("cpu") for each in batch]


def settings(optimizer):
    return dict(rate=optimizer.param_groups[0]["lr"])


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=8)
net = nn.Linear(4, 1)
optimizer = optim.SGD(net.parameters(), lr=0.1)
history = []
for epoch in range(2):
    for batch in loader:
        x, y = batch
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append({given})
    print(epoch, history[-1])
"""


@pytest.mark.parametrize("given", ['detached({"loss": loss})', "row(epoch, loss)"])
def test_what_is_put_together_of_a_share_is_told(convert_text, given):
    report, _ = convert_text(PROGRAM.replace("{given}", given))
    told = [finding.message for finding in report.of(Kind.NOTE) if finding.code == "MIG114"]
    assert told == ["history, read after this loop, is of one process's share of the data"]


@pytest.mark.parametrize("given", ["settings(optimizer)", "row(epoch, net.weight.sum())"])
def test_what_is_put_together_of_something_else_is_not(convert_text, given):
    report, _ = convert_text(PROGRAM.replace("{given}", given))
    assert not [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG114"]
