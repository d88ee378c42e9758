"""A training that goes through its loader without end and is left after a number of steps: schedules go by these."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 40


def forever(loader):
    while True:
        yield from loader


def once(loader):
    for batch in loader:
        yield batch


def main():
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    loader = DataLoader(data, batch_size=4)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / STEPS)
    for step, (x, y) in enumerate(OVER, start=1):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step >= STEPS:
            break


main()
"""
BY_STEPS = "schedule goes by the steps after which the training ends: on N processes each step takes N batches"


@pytest.mark.parametrize("over", ["forever(loader)", "itertools.cycle(loader)"])
def test_the_schedule_goes_by_the_steps_of_the_training(convert_text, over):
    report, result = convert_text(PROGRAM.replace("OVER", over))

    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in result
    assert BY_STEPS in [note.message for note in report.of(Kind.NOTE)]


@pytest.mark.parametrize("over", ["loader", "once(loader)"])
def test_where_the_loader_may_end_first_it_goes_by_samples(convert_text, over):
    report, _ = convert_text(PROGRAM.replace("OVER", over))

    assert BY_STEPS not in [note.message for note in report.of(Kind.NOTE)]
