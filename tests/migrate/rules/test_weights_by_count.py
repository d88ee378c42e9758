"""Weights of a loss, or of parameters, that go by a count of steps: `migrate/programs/training/weights.py`."""

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


AVERAGED = {
    "a sum": "p.data = {tau} * p.data + (1 - {tau}) * q.data",
    "in place": "p.data.mul_({tau}).add_(q.data, alpha=1 - {tau})",
    "between both": "p.lerp_(q.detach(), 1 - {tau})",
}
AVERAGE = """
def average(slow, fast, tau):
    with torch.no_grad():
        for p, q in zip(slow.parameters(), fast.parameters()):
            {update}
"""


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


@pytest.mark.parametrize("name", AVERAGED)
@pytest.mark.parametrize(
    ("given", "is_told"), [("min(0.999, step / 1000)", True), ("0.99", False), ("epoch / 9", False)]
)
def test_the_momentum_of_an_averaged_model(convert_text, name, given, is_told):
    setup = AVERAGE.format(update=AVERAGED[name].format(tau="tau"))
    holes = {"setup": f"import copy\n{setup}", "last": f"average(slow, model, {given})"}
    report, result = convert_text(source(**holes).replace("\nstep = 0", "\nslow = copy.deepcopy(model)\nstep = 0"))

    assert "accelerator.backward(" in result
    assert len([each for each in report.findings if "weighs parameters by a count" in each.message]) == is_told


def test_a_momentum_in_the_loop_itself_is_told_once(convert_text):
    update = AVERAGED["in place"].format(tau="tau")
    last = (
        "tau = min(0.999, step / 1000)\n        for p, q in zip(slow.parameters(), model.parameters()):\n"
        f"            {update}\n            {update}"
    )
    text = source(last=last).replace("\nstep = 0", "\nslow = nn.Linear(2, 1)\nstep = 0")
    report, _ = convert_text(text)

    told = [finding for finding in report.findings if "weighs parameters by a count" in finding.message]
    assert [text.splitlines()[finding.line - 1].strip() for finding in told] == [update]
