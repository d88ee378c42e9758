"""Losses that are summed, and divided by what the loader was told to put into a batch: a mean on each process."""

import pytest

PROGRAM = """\
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
args = parser.parse_args([])
torch.manual_seed(0)
other = 3
loader = DataLoader(TensorDataset(torch.randn(16, 2), torch.randn(16, 1)), batch_size=args.batch_size)
model = nn.Linear(2, 1)
{criterion}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model.weight.sum().item())
"""
MEANS = {
    "at once": "loss = criterion(model(x), y) / args.batch_size",
    "in place": "loss = nn.functional.mse_loss(model(x), y, reduction='sum')\n    loss /= args.batch_size",
    "by a function": "loss = nn.functional.mse_loss(model(x), y, reduction='sum') / args.batch_size",
}
SUMS = {
    "whole": "loss = criterion(model(x), y)",
    "by another number": "loss = criterion(model(x), y) / other",
}


def filled(loss):
    criterion = 'criterion = nn.MSELoss(reduction="sum")' if "criterion" in loss else ""
    return PROGRAM.format(loss=loss, criterion=criterion)


def told(convert_text, loss):
    report, _ = convert_text(filled(loss))
    return [finding for finding in report.findings if "this loss is a sum" in finding.message]


@pytest.mark.parametrize("name", MEANS)
def test_a_sum_that_is_divided_by_the_batch_size_is_a_mean(convert_text, name):
    assert not told(convert_text, MEANS[name])


@pytest.mark.parametrize("name", SUMS)
def test_others_are_told(convert_text, name):
    assert told(convert_text, SUMS[name])


def test_two_processes_train_alike(convert_text, numbers_printed):
    source = filled(MEANS["at once"])
    _, result = convert_text(source)
    (alone,) = numbers_printed(source, 1)

    assert numbers_printed(result.replace("default=4", "default=2"), 2) == [pytest.approx(alone, abs=1e-6)]


KEPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, loader):
        self.model, self.loader = nn.Linear(2, 1), loader
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.criterion = nn.MSELoss(reduction="sum")

    def step(self, x, y):
        return self.criterion(self.model(x), y){divided}

    def fit(self):
        for x, y in self.loader:
            loss = self.step(x, y){more}
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


trainer = Trainer(DataLoader(TensorDataset(torch.randn(16, 2), torch.randn(16, 1)), batch_size=4))
trainer.fit()
"""


@pytest.mark.parametrize(
    ("divided", "more", "is_sum"),
    [
        (" / len(y)", "", False),
        ("", "", True),
        (" / len(y)", " + self.criterion(self.model(-x), y)", True),
        (" / len(y)", " + self.criterion(self.model(-x), y) / x.size(0)", False),
    ],
)
def test_a_loss_that_is_kept_is_judged_where_it_is_called(convert_text, divided, more, is_sum):
    report, result = convert_text(KEPT.format(divided=divided, more=more))
    assert "accelerator.backward(loss)" in result
    assert any("this loss is a sum" in finding.message for finding in report.findings) is is_sum
