"""Functions that write, and that cannot be handed the accelerator: those are named that do it themselves."""

import pytest

PROGRAM = """
import sys

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def keep(rows, path):
    with open(path, "w") as file:
        file.write(str(len(rows)))
    return rows


def small(path):
    {small}
    return keep(torch.ones(8, 2), path)


def large(path):
    return keep(torch.ones(16, 2), path)


MAKERS = {{"keep": keep, "small": small, "large": large}}


def main():
    rows = MAKERS[sys.argv[1]]("rows.txt")
    loader = DataLoader(TensorDataset(rows), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


main()
"""


@pytest.mark.parametrize(
    ("small", "named"),
    [("pass", ["keep()"]), ("torch.save([], path)", ["keep()", "small()"])],
    ids=["silent", "speaking"],
)
def test_callers_of_one_are_not(convert_text, small, named):
    report, _ = convert_text(PROGRAM.format(small=small))
    told = [finding.message for finding in report.findings if "every process prints or writes what" in finding.message]

    assert sorted(message.split()[6] for message in told) == named
