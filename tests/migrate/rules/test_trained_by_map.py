"""Training by `map(step, loader)`: every process trains on all of the data, and is told why."""

import pytest

PROGRAM = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.arange(32.0).view(16, 2) / 32, torch.ones(16, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)


def step(batch):
    x, y = batch
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for epoch in range(2):
    losses = {trained}
    print(sum(losses) / len(losses))
"""
TRAINED = (
    "list(map(step, loader))",
    "[loss for loss in map(step, loader)]",
    "[step(batch) for batch in loader]",
)


@pytest.mark.parametrize("trained", TRAINED)
def test_the_reason_says_where_the_loader_is_gone_through(trained, convert_text):
    source = PROGRAM.format(trained=trained)
    report, _ = convert_text(source)
    said = [each for each in report.findings if each.code == "MIG903" and "trains on the same data" in each.message]
    assert [each.line for each in said] == [source.splitlines().index(f"    losses = {trained}") + 1]
    assert "no loop that is shared out" in said[0].message


def test_all_processes_train_on_all_of_it(convert_text, numbers_printed):
    source = PROGRAM.format(trained="list(map(step, loader))")
    _, text = convert_text(source)
    assert numbers_printed(text, 2) == pytest.approx(numbers_printed(source, 1), rel=1e-5)


def test_what_is_mapped_and_does_not_train_is_no_training(convert_text):
    source = PROGRAM.format(trained="[]").replace("losses = []", "losses = list(map(len, loader))\n    step((x, y))")
    report, _ = convert_text(source.replace("for epoch", "x, y = torch.ones(4, 2), torch.ones(4, 1)\nfor epoch"))
    assert not any("in this expression" in each.message for each in report.findings)
