"""A solver that keeps its flag for the GPU below the model: the flag that it is handed is there before."""

import pytest

PROGRAM = """
import argparse
import os

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, loader, model, optimizer, args):
        self.loader = loader
        self.model = model
        self.optimizer = optimizer
        {above}
        self.use_cuda = {flag}
        self.epochs = args.epochs

    def train(self):
        for epoch in range(self.epochs):
            self.model.train()
            for x, y in self.loader:
                if self.use_cuda:
                    x, y = x.cuda(), y.cuda()
                loss = ((self.model(x) - y) ** 2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(self.model.weight.sum().item())


parser = argparse.ArgumentParser()
parser.add_argument("--use_cuda", type=int, default=0)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
loader = DataLoader(data, batch_size=int(os.environ.get("BATCH", "8")), shuffle=True)
model = nn.Linear(4, 1)
if args.use_cuda:
    model = nn.DataParallel(model)
    model.cuda()
solver = Solver(loader, model, optim.SGD(model.parameters(), lr=0.1), args)
solver.train()
"""
PLAIN = PROGRAM.format(above="self.where = model.weight.device", flag="args.use_cuda")


def test_the_accelerator_is_told_the_flag_that_is_there(convert_text):
    _, result = convert_text(PLAIN)

    assert "Accelerator(cpu=not args.use_cuda)" in result
    assert result.index("Accelerator(") < result.index("self.use_cuda = args.use_cuda")


def test_it_computes_the_same(convert_text, numbers_printed, monkeypatch):
    _, result = convert_text(PLAIN)
    expected = numbers_printed(PLAIN, 1)
    assert numbers_printed(result, 1) == expected
    monkeypatch.setenv("BATCH", "4")

    assert numbers_printed(result, 2) == pytest.approx(expected, abs=1e-5)


NOT_THERE = {
    "made of more than the flag": {"above": "pass", "flag": "args.use_cuda > 0 and len(loader) > 1"},
    "another one by then": {"above": "args = args.of_solver", "flag": "args.use_cuda"},
}


@pytest.mark.parametrize("name", NOT_THERE)
def test_it_is_refused_where_the_flag_is_not_that_one(refused_text, name):
    refused_text(
        PROGRAM.format(**{"above": "self.where = model.weight.device"} | NOT_THERE[name]),
        code="MIG100",
        at="self.",
        mentions=["which gets its value after the models are made"],
    )
