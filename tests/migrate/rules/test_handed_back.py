"""A trainer that gets its model back from a function that it hands it to, with other things: `self.model, start = ...`.

It is the model that it was: the accelerator is made with it, and methods that run without a training have it, too.
"""

import textwrap

from migrate.report.model import Kind

PROGRAM = """
import sys

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def load(model, path):
    if not path:
        return
    state = torch.load(path)
    {loads}
    return model, state["epoch"]


class Experiment:
    def __init__(self):
        self.model = nn.Linear(4, 1)

    def train(self, path):
        data = TensorDataset(torch.ones(32, 4), torch.ones(32, 1))
        loader = DataLoader(data, batch_size=8, shuffle=True)
        optimizer = optim.Adam(self.model.parameters(), lr=0.1)
        start = 0
        if path:
            self.model, start = load(self.model, path)
        for epoch in range(start, 3):
            for x, y in loader:
                optimizer.zero_grad()
                loss = ((self.model(x) - y) ** 2).mean()
                loss.backward()
                optimizer.step()
        torch.save(self.model.state_dict(), "best.pt")

    def test(self):
        self.model.load_state_dict(torch.load("best.pt"))
        print(self.model(torch.ones(1, 4)).item())


experiment = Experiment()
{ends}
"""
LOADS = 'model.load_state_dict(state["model"])'
ANEW = 'model = nn.Linear(4, 1)\n    model.load_state_dict(state["model"])'
ONCE = """
if len(sys.argv) > 2:
    experiment.test()
else:
    experiment.train(sys.argv[1])
    experiment.test()
"""
TWICE = "experiment.train(sys.argv[1])\nexperiment.train(sys.argv[1])"


def program(loads=LOADS, ends=ONCE):
    return PROGRAM.format(loads=loads, ends=textwrap.dedent(ends).strip()).lstrip("\n")


def test_the_accelerator_is_made_with_the_model_that_is_handed_back(convert_text):
    report, result = convert_text(program())

    assert not report.of(Kind.LEFT)
    init = result[result.index("def __init__") : result.index("def train")]
    train = result[result.index("def train") : result.index("def test")]
    assert "self.accelerator = Accelerator(" in init
    assert "self.accelerator.prepare(" in train
    assert train.index("load(self.model, path)") < train.index("self.accelerator.prepare(")
    assert "self.accelerator.unwrap_model(self.model).load_state_dict(" in result[result.index("def test") :]


def test_where_it_is_trained_again_it_is_prepared_once(convert_text):
    _, result = convert_text(program(ends=TWICE))

    assert "self.model = self.accelerator.prepare(self.model)" in result
    assert "loader, optimizer = self.accelerator.prepare(loader, optimizer)" in result


def test_another_model_that_comes_back_is_made_by_the_training(convert_text):
    _, result = convert_text(program(loads=ANEW))

    assert "self.accelerator = Accelerator(" not in result[: result.index("def train")]
