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


BY_THE_SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, net, device):
        self.loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
        self.net = net
        self.device = device
        {first}

    def setup(self):
        {made}

    def make_optimizer(self):
        self.optimizer = torch.optim.Adam(self.net.parameters(), 0.01)

    def look(self):
        print(self.evaluate())

    def train(self):
        for x, y in self.loader:
            loss = nn.functional.mse_loss(self.net(x.to(self.device)), y.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        print(self.evaluate())

    def evaluate(self):
        self.net.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in self.loader:
                x, y = x.to(self.device), y.to(self.device)
                total += (self.net(x) - y).abs().sum().item()
        return total


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Linear(4, 1).to(device)
    solver = Solver(net, device)
    {between}
    {set_up}
    {behind}
"""
HOLES = {
    "first": "self.best = 0",
    "made": "self.make_optimizer()",
    "between": "print(solver)",
    "set_up": "solver.setup()",
    "behind": "solver.train()",
}
SET_UP = {
    "the script sets it up": {},
    "beside other work": {"made": "self.make_optimizer()\n        self.rounds = 2"},
}
NOT_SURE = {
    "used before": {"between": "solver.look()"},
    "set up under a condition": {"set_up": "if device is not None:\n        solver.setup()"},
    "the raw model used behind": {"behind": "solver.train()\n    net.eval()\n    print(net(torch.ones(1, 4)))"},
}


@pytest.mark.parametrize("name", SET_UP)
def test_what_the_script_sets_up_next_is_prepared_for_all_methods(convert_text, name):
    report, result = convert_text(BY_THE_SCRIPT.format(**HOLES | SET_UP[name]))

    assert not report.of(Kind.LEFT)
    assert "self.loader, self.net, self.optimizer = self.accelerator.prepare(" in result
    assert "x.to(self.device)" not in result
    assert "= self.accelerator.gather_for_metrics(" in result


@pytest.mark.parametrize("name", NOT_SURE)
def test_what_may_be_used_before_it_is_set_up_is_refused(convert_text, name):
    report, _ = convert_text(BY_THE_SCRIPT.format(**HOLES | NOT_SURE[name]))

    assert report.of(Kind.LEFT)
