"""Lengths of objects that run over a loader: they are as long as that, if they say so by its length."""

import pytest

from migrate.programs.values.divided import Joined

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

class Moved:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        for x, y in self.loader:
            yield x, y

    def __len__(self):
        return {length}

def fit(net, loader):
    opt = optim.SGD(net.parameters(), lr=0.1)
    steps = optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=len(loader))
    total = 0.0
    for x, y in loader:
        loss = net(x).mean()
        loss.backward()
        opt.step()
        steps.step()
        total += loss.item()
    print(total / len(loader))

loader = Moved(DataLoader(data, shuffle=True))
other = Moved(DataLoader(more))
fit(nn.Linear(1, 1), loader)
print(len(other))
"""


@pytest.mark.parametrize(
    ("length", "is_as_long"),
    [
        ("len(self.loader)", True),
        ("100", False),
        ("len(self.loader.dataset)", False),
    ],
)
def test_an_object_is_as_long_as_the_loader_that_it_holds(decide, length, is_as_long):
    _, conversion = decide(PROGRAM.format(length=length))

    (loop,) = conversion.program.training
    (total,) = conversion.loops.accumulated(loop)
    assert (total.joined is Joined.MEAN) == is_as_long
    assert [named.target for named in conversion.prepared_schedulers] == ([] if is_as_long else ["steps"])
