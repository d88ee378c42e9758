"""Objects that make their models in a method which their `__init__` calls, and that put them into a mode later."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, loader):
        self.loader = loader
        self.device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        self.build_model()

    def build_model(self):
        self.net = nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters(), 0.01)
        self.net.to(self.device)

    def train(self):
        {again}
        for x, y in self.loader:
            loss = nn.functional.mse_loss(self.net(x.to(self.device)), y.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
    solver = Solver(loader)
    solver.train()


main()
"""


@pytest.mark.parametrize("again", ["self.net.train()", "self.net = self.net.train()"])
def test_a_mode_is_no_other_object(convert_text, again):
    report, result = convert_text(SOURCE.format(again=again))

    assert not report.of(Kind.LEFT)
    assert "self.loader, self.net, self.optimizer = self.accelerator.prepare(" in result


def test_another_object_is(convert_text):
    report, _ = convert_text(SOURCE.format(again="self.net = nn.Linear(4, 1)"))

    assert report.of(Kind.LEFT)
