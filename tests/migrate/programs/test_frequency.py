"""How often code runs."""

import ast

import pytest

from migrate.programs.frequency import Frequency, Rate

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
loader = DataLoader(data)
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
"""

CASES = {
    "at the top": ("here()\nfor e in range(3):\n    for x in loader:\n        net(x).sum().backward()", {Rate.ONCE}),
    "per epoch": ("for e in range(3):\n    for x in loader:\n        net(x).sum().backward()\n    here()", {Rate.EPOCH}),
    "per batch": ("for e in range(3):\n    for x in loader:\n        net(x).sum().backward()\n        here()", {Rate.BATCH}),
    "in a function per batch": (
        "def log():\n    for i in range(2):\n        here()\n"
        "def train():\n    for x in loader:\n        net(x).sum().backward()\n        log()\n"
        "for e in range(3):\n    train()",
        {Rate.BATCH},
    ),
    "in a function per epoch": (
        "def train():\n    for x in loader:\n        net(x).sum().backward()\n    here()\n"
        "def main():\n    for e in range(3):\n        train()\nmain()",
        {Rate.EPOCH},
    ),
    "per batch of an evaluation": (
        "def evaluate():\n    for x in loader:\n        net(x)\n        here()\n"
        "for e in range(3):\n    for x in loader:\n        net(x).sum().backward()\n    evaluate()",
        {Rate.EVALUATED_BATCH},
    ),
    "in another loop": ("for name in names:\n    here()", {Rate.REPEATED}),
    "once and per epoch": (
        "def save():\n    here()\nfor e in range(3):\n    for x in loader:\n        net(x).sum().backward()\n    save()\nsave()",
        {Rate.ONCE, Rate.EPOCH},
    ),
    "in a function that nobody calls": ("def save():\n    here()\n    torch.save(1, 2)", {Rate.UNKNOWN}),
    "in a function that is handed about": ("def save():\n    here()\nrun(save)\nsave()", {Rate.ONCE, Rate.UNKNOWN}),
}


@pytest.mark.parametrize("name", CASES)
def test_rates(analysed, name):
    source, expected = CASES[name]
    facts, loops = analysed(HEAD + source)
    (call,) = (use.node for use in facts.calls_anywhere if ast.unparse(use.node) == "here()")

    assert Frequency(facts, loops).of(call) == expected
