"""Weights of a loss that go by a count of steps: `migrate/programs/training/weights.py`."""

import pytest

from migrate.report.model import Kind

SAYS = "weighs the loss by a count of steps"
RAMP = "def ramp(done, length=1000):\n    if done < length:\n        return done / length\n    return 1.0"
PROGRAM = """
import math
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

{setup}
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
{measured}
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
step = 0
for epoch in range(9):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        output = model(x)
        part = output.pow(2).mean()
        loss = (output - y).pow(2).mean()
        {weigh}
        loss.backward()
        optimizer.step()
        step += 1
        {last}
"""
BY_COUNT = {
    "a ramp": ("beta = min(1.0, step / 1000)\n        loss = loss + beta * part", "beta"),
    "where it stands": ("loss = loss + step / 1000 * part", "step / 1000"),
    "behind the loss": ("loss = loss + part * min(1.0, step / 1000)", "min(1.0, step / 1000)"),
    "a function": ("loss = loss + ramp(step) * part", "ramp(step)"),
    "an exponent": ("loss = loss * (1 - math.exp(-step / 300))", "1 - math.exp(-step / 300)"),
    "a length before prepare": ("loss = loss + (i + epoch * most) / (9 * most) * part", ""),
}
OTHERWISE = {
    "a constant": "beta = 0.1\n        loss = loss + beta * part",
    "an epoch": "loss = loss + epoch / 9 * part",
    "a share of the training": "loss = loss + (i + epoch * len(loader)) / (9 * len(loader)) * part",
    "by turns": "loss = loss + step % 2 * part",
    "a number that is only shown": "loss = loss + part\n        print(step / 1000 * part)",
}


def source(**holes):
    return PROGRAM.format(**({"setup": RAMP, "measured": "", "weigh": "", "last": ""} | holes)).lstrip()


def told(report):
    return [f.message for f in report.of(Kind.NOTE) if f.code == "MIG118" and SAYS in f.message]


@pytest.mark.parametrize("name", BY_COUNT)
def test_a_weight_that_goes_by_steps_is_told(convert_text, name):
    weigh, weight = BY_COUNT[name]
    measured = "most = len(loader)" if "most" in weigh else ""
    report, result = convert_text(source(weigh=weigh, measured=measured))

    assert "accelerator.backward(" in result
    (message,) = told(report)
    assert weight in message


@pytest.mark.parametrize("name", OTHERWISE)
def test_one_that_does_not_is_not(convert_text, name):
    report, result = convert_text(source(weigh=OTHERWISE[name]))

    assert "accelerator.backward(" in result
    assert not told(report)


def test_a_training_that_ends_after_steps_goes_by_steps(convert_text):
    holes = {"weigh": BY_COUNT["a ramp"][0], "last": "if step > 5000:\n            break"}
    report, result = convert_text(source(**holes))

    assert "accelerator.backward(" in result
    assert not told(report)


def test_a_count_that_is_multiplied_for_the_rate_is_right(convert_text):
    weigh = (
        "done = step / 1000\n        optimizer.param_groups[0]['lr'] = 0.1 * (1 - done)\n"
        "        loss = loss + done * part"
    )
    report, result = convert_text(source(weigh=weigh))

    assert "done = step * accelerator.num_processes / 1000" in result
    assert not told(report)
