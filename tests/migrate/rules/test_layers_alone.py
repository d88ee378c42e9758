"""A model that only holds layers, each prepared by itself, and trains them by methods of its own."""

PROGRAM = """
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 1)
        {made}

    def fit(self):
        for _ in range(10):
            self.step(torch.randn(8, 4))

    def step(self, x):
        loss = self.second(self.first(x)).pow(2).mean()
        self.zero_grad()
        loss.backward()
        {stepped}


torch.manual_seed(0)
Network().fit()
"""
MADE = """self.one = torch.optim.SGD(self.first.parameters(), lr=0.1)
        self.other = torch.optim.SGD(self.second.parameters(), lr=0.1)"""
STEPPED = """self.one.step()
        self.other.step()"""


def test_layers_that_run_by_themselves_are_not_trained_around_their_forward(convert_text):
    report, result = convert_text(PROGRAM.format(made=MADE, stepped=STEPPED))

    assert "prepare(\n            self.first, self.second, self.one, self.other\n        )" in result
    assert "find_unused_parameters" not in result
    assert not any(finding.code == "MIG119" for finding in report.findings)
