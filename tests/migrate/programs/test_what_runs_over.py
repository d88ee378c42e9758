"""What runs over a loader and was made before prepare goes on with the raw one, whatever its name is."""

import pytest

FUNCTION = """
import itertools

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


def endless(loader):
    while True:
        yield from loader


def fit(model):
    loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=2)
    {name} = {made}
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for (x,), _ in zip({name}, range(9)):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


fit(nn.Linear(2, 1))
"""
OBJECT = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    while True:
        yield from loader


class Trainer:
    def __init__(self, model):
        self.model = model
        self.loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=2)
        {name} = {made}
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    def fit(self):
        for (x,), _ in zip({name}, range(9)):
            self.optimizer.zero_grad()
            self.model(x).mean().backward()
            self.optimizer.step()


Trainer(nn.Linear(2, 1)).fit()
"""


@pytest.mark.parametrize(
    "made", ["endless(loader)", "iter(loader)", "itertools.cycle(loader)", "tqdm(endless(loader))"]
)
@pytest.mark.parametrize("name", ["loader", "batches"])
def test_a_loader_is_prepared_above_what_runs_over_it(decide, name, made):
    program, conversion = decide(FUNCTION.format(name=name, made=made))

    assert not program.refusals
    assert targets(conversion) == [["loader"], ["model", "optimizer"]]


@pytest.mark.parametrize("made", ["endless(self.loader)", "iter(self.loader)"])
@pytest.mark.parametrize("name", ["self.loader", "self.batches"])
def test_so_it_is_where_an_object_keeps_that(decide, name, made):
    program, conversion = decide(OBJECT.format(name=name, made=made))

    assert not program.refusals
    assert targets(conversion) == [["self.loader"], ["self.model", "self.optimizer"]]


def targets(conversion):
    """What each call of prepare is given."""
    return [[named.target for named in stage.objects] for stage in conversion.placement.stages.each]
