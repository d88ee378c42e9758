"""Sums over the features of a mean that has folded the rows: nothing that the number of processes divides."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=8, shuffle=True)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
prior = 1 / 3
for (x,) in loader:
    soft = torch.softmax(model(x), dim=1)
    mean = soft.mean(dim=0)
    optimizer.zero_grad()
    loss = LOSS
    loss.backward()
    optimizer.step()
"""
SUM = "this loss is a sum: N processes average their gradients, which divides it by N"
OF_MEANS = {
    "entropy of a mean": "torch.sum(-mean * torch.log(mean + 1e-5))",
    "a distance from what is known": "torch.sum(prior * torch.log(prior / mean))",
    "by its methods": "(mean.clamp(min=1e-5).log() * mean).sum()",
}
OF_ROWS = {
    "entropy of rows": "torch.sum(-soft * torch.log(soft + 1e-5))",
    "rows beside a mean": "torch.sum(soft * torch.log(mean + 1e-5))",
    "rows and a mean by name": "((soft - 0.1) * mean).sum()",
}


def notes(convert_text, loss):
    report, result = convert_text(PROGRAM.replace("LOSS", loss).lstrip())
    assert "accelerator.backward(loss)" in result
    return [finding.message for finding in report.findings]


@pytest.mark.parametrize("name", OF_MEANS)
def test_a_sum_over_features_is_no_sum_over_the_batch(convert_text, name):
    assert SUM not in notes(convert_text, OF_MEANS[name])


@pytest.mark.parametrize("name", OF_ROWS)
def test_a_sum_over_rows_is_told(convert_text, name):
    assert SUM in notes(convert_text, OF_ROWS[name])
