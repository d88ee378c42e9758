"""How often code runs."""

import ast
import textwrap

import pytest

from migrate.programs.reach.frequency import Frequency, Rate

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
loader = DataLoader(data)
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
"""

CASES = {
    "at the top": (
        """
        here()
        for e in range(3):
            for x in loader:
                net(x).sum().backward()
        """,
        {Rate.ONCE},
    ),
    "per epoch": (
        """
        for e in range(3):
            for x in loader:
                net(x).sum().backward()
            here()
        """,
        {Rate.EPOCH},
    ),
    "per batch": (
        """
        for e in range(3):
            for x in loader:
                net(x).sum().backward()
                here()
        """,
        {Rate.BATCH},
    ),
    "per batch, around the loop over its parts that steps": (
        """
        for e in range(3):
            for x in loader:
                here()
                for part in x:
                    net(part).sum().backward()
                    opt.step()
        """,
        {Rate.BATCH},
    ),
    "in a function per batch": (
        """
        def log():
            for i in range(2):
                here()
        def train():
            for x in loader:
                net(x).sum().backward()
                log()
        for e in range(3):
            train()
        """,
        {Rate.BATCH},
    ),
    "in a function per epoch": (
        """
        def train():
            for x in loader:
                net(x).sum().backward()
            here()
        def main():
            for e in range(3):
                train()
        main()
        """,
        {Rate.EPOCH},
    ),
    "per batch of an evaluation": (
        """
        def evaluate():
            for x in loader:
                net(x)
                here()
        for e in range(3):
            for x in loader:
                net(x).sum().backward()
            evaluate()
        """,
        {Rate.EVALUATED_BATCH},
    ),
    "per batch that is taken in parts": (
        """
        for x in loader:
            for part in x:
                net(part).sum().backward()
            opt.step()
            here()
        """,
        {Rate.BATCH},
    ),
    "in another loop": (
        """
        for name in names:
            here()
        """,
        {Rate.REPEATED},
    ),
    "once and per epoch": (
        """
        def save():
            here()
        for e in range(3):
            for x in loader:
                net(x).sum().backward()
            save()
        save()
        """,
        {Rate.EPOCH, Rate.ONCE},
    ),
    "in a function that nobody calls": (
        """
        def save():
            here()
            torch.save(1, 2)
        """,
        {Rate.UNKNOWN},
    ),
    "in a function that is handed about": (
        """
        def save():
            here()
        run(save)
        save()
        """,
        {Rate.ONCE, Rate.UNKNOWN},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rates(analysed, name):
    source, expected = CASES[name]
    facts, loops = analysed(HEAD + textwrap.dedent(source))
    (call,) = (use.node for use in facts.calls_anywhere if ast.unparse(use.node) == "here()")

    assert Frequency(facts, loops).of(call) == expected
