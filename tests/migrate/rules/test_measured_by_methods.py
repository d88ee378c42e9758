"""Lengths that methods of an object measure which has prepared its loader when it was made are those of its share."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, loader, epochs):
        self.loader = loader
        self.epochs = epochs
        {before}
        self.build()
        {below}

    def build(self):
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)

    def train(self):
        step = 0
        {start}
        for epoch in range(self.epochs):
            for x, y in self.loader:
                for group in self.optimizer.param_groups:
                    group["lr"] = 0.1 * (1 - step / {total})
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.model(x), y).backward()
                self.optimizer.step()
                step += 1


def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
    {made}
    solver.train()


main()
"""
MADE = {
    "once": "solver = Solver(loader, 3)",
    "in one of two places": "solver = Solver(loader, 3) if len(loader) > 1 else Solver(loader, 9)",
}
LATE = {
    "in the loop": {"total": "(self.epochs * len(self.loader))"},
    "above it": {"start": "total = self.epochs * len(self.loader)", "total": "total"},
    "below the method": {"below": "self.total = epochs * len(self.loader)", "total": "self.total"},
}
EARLY = {"before": "self.total = epochs * len(loader)", "total": "self.total"}


def _program(made, parts):
    return PROGRAM.format_map({"before": "", "below": "", "start": "", "made": made} | parts)


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
def test_a_rate_that_is_set_against_one_goes_by_steps(convert_text, made, late):
    _, result = convert_text(_program(made, late))

    assert "self.loader, self.model, self.optimizer = self.accelerator.prepare(" in result
    assert f"(1 - step / {late['total']})" in result


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_one_that_is_set_against_the_length_above_it_counts_the_batches_of_all(convert_text, made):
    _, result = convert_text(_program(made, EARLY))

    assert "(1 - step * self.accelerator.num_processes / self.total)" in result


RENEWED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, loader):
        self.loader = loader
        {before}
        self.build()

    def build(self):
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)

    def train(self):
        batches = iter(self.loader)
        every = {every}
        for step in range(20):
            if (step + 1) % every == 0:
                batches = iter(self.loader)
            x, y = next(batches)
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()


Solver(DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)).train()
"""


@pytest.mark.parametrize("every", ["len(batches)", "len(self.loader)", "min(9, len(batches))"])
def test_an_iterator_that_is_made_anew_by_one_converts(convert_text, every):
    report, _ = convert_text(RENEWED.format(before="", every=every))

    assert not report.of(Kind.LEFT)


def test_one_that_is_made_anew_by_the_length_above_does_not(refused_text):
    source = RENEWED.format(before="self.every = len(loader)", every="self.every")

    refused_text(source, "MIG104", "if (step + 1) % every", ["counted from the data"])
