"""A loss of the project that is made of others: its parts may be sums, which N processes' averages divide by N."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from mine import Samples


class Margin(nn.Module):
    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def forward(self, scores, labels):
        rows = (labels * torch.relu(self.bound - scores)).sum(dim=1)
        return rows.{folded}()


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.margin = Margin(0.9)
        self.rest = nn.MSELoss()

    def forward(self, scores, labels):
        {computed}


loader = DataLoader(Samples(), batch_size=8)
model = nn.Linear(8, 3)
criterion = Both()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""
NAMED = "margin = self.margin(scores, labels)\n        return margin + 0.1 * self.rest(scores, labels)"
SUM = "this loss is a sum"


@pytest.mark.parametrize("computed", [NAMED, "return self.margin(scores, labels) + self.rest(scores, labels)"])
def test_a_sum_in_a_loss_that_another_one_keeps_is_told(convert_text, computed):
    report, _ = convert_text(PROGRAM.format(folded="sum", computed=computed))
    [told] = [finding for finding in report.findings if SUM in finding.message]
    assert told.line == 14
    report, _ = convert_text(PROGRAM.format(folded="mean", computed=computed))
    assert not [finding for finding in report.findings if SUM in finding.message]


def test_a_loss_that_is_kept_and_not_called_is_not_told(convert_text):
    report, _ = convert_text(PROGRAM.format(folded="sum", computed="return self.rest(scores, labels)"))
    assert not [finding for finding in report.findings if SUM in finding.message]
