"""Lengths of a loader that are taken for a training, though its last pass may have been an evaluation."""

import ast

import pytest

from migrate.programs.evaluation.steps import taken_for_training

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

def train(net, opt, loader):
    {above}
    net.train()
    total = 0.0
    for x, y in loader:
        loss = net(x).sum()
        loss.backward()
        opt.step()
        total += loss.item()
        {inside}
    {below}

def evaluate(net, loader):
    {measured}
    net.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += net(x).sum().item()
    return total / {divided}

def mean(total, loader):
    return total / len(loader)

train_loader = DataLoader(data, shuffle=True)
val_loader = DataLoader(other)
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
{first}
for epoch in range(3):
    train(net, opt, train_loader)
    print(evaluate(net, {evaluated}))
"""


def program(
    *, above="pass", inside="pass", below="pass", measured="pass", divided="1", first="", evaluated="train_loader"
):
    return PROGRAM.format(
        above=above, inside=inside, below=below, measured=measured, divided=divided, first=first, evaluated=evaluated
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (program(above="steps = len(loader)"), ["len(loader)"]),
        (program(above="steps = len(loader)", below="print(total / len(loader))"), ["len(loader)"]),
        (program(first="steps = 3 * len(train_loader)"), ["len(train_loader)"]),
        (
            program(first="evaluate(net, val_loader)\nsteps = len(train_loader)", evaluated="val_loader"),
            ["len(train_loader)"],
        ),
        (program(inside="print(evaluate(net, loader), total / len(loader))"), ["len(loader)"]),
        # of the pass that is going on or over, or of an evaluation
        (program(inside="print(total / len(loader))"), []),
        (program(below="print(total / len(loader))"), []),
        (program(measured="steps = len(loader)", divided="steps"), []),
        (program(divided="len(loader)"), []),
        (program(divided="mean(total, loader)"), []),
        # nothing is evaluated on it, and the model trains
        (program(above="steps = len(loader)", first="steps = len(train_loader)", evaluated="val_loader"), []),
        (program(first="evaluate(net, val_loader)\nsteps = len(val_loader)", evaluated="val_loader"), []),
    ],
)
def test_what_must_be_the_steps_of_a_training(decide, source, expected):
    _, conversion = decide(source)

    assert [ast.unparse(call) for call in taken_for_training(conversion)] == expected
