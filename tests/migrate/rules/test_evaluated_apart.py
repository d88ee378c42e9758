"""Evaluations over a loader that is made anew for each of them, below the training: nothing of it is shared out."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.rows = TensorDataset(torch.randn(64, 2), torch.randn(64, 1))
        self.loader = DataLoader(self.rows, batch_size=4, shuffle=True)
        self.model = nn.Linear(2, 1).to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for epoch in range(3):
            for x, y in self.loader:
                x, y = x.to(self.device), y.to(self.device)
                loss = nn.functional.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(self.evaluate())

    def evaluate(self):
        held = DataLoader(self.rows, batch_size=8)
        self.model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in held:
                {body}
        self.model.train()
        return total


Trainer().train()
"""


def notes(convert_text, body):
    report, _ = convert_text(PROGRAM.format(body=body))
    return [finding.message for finding in report.findings if finding.code == "MIG114"]


def test_that_every_process_runs_them_in_full_is_said(convert_text):
    said = notes(convert_text, "total += (self.model(x.to(self.device)) - y.to(self.device)).abs().sum().item()")

    assert said == ["every process runs this evaluation in full: its loader is made apart from the training"]


@pytest.mark.parametrize("body", ["total += y.sum().item()"])
def test_what_only_looks_at_the_data_is_nothing_to_say(convert_text, body):
    assert not notes(convert_text, body)
