"""Tensors that are added to where they stand, `total.add_(loss)`: sums as `total += loss` is, in meters, too."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 2), torch.randn(16, 1))
loader = DataLoader(data, batch_size=BATCH)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)


class Meter:
    def __init__(self):
        self.total = torch.zeros(1)
        self.last = torch.zeros(1)
        self.mean = torch.zeros(1)
        self.count = 0.0

    def update(self, value, n=1):
        self.count = self.count + n
        PUT

    def value(self):
        return (self.total / self.count).item()


def train():
    BEGIN
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        FEED
    return SHOWN


for epoch in range(2):
    print(train())
"""
METER = ("meter = Meter()", "meter.update(loss.detach(), len(x))", "meter.value()")
JOINED = {
    "a tensor": ("total, n = torch.zeros(1), 0", "total.add_(loss.detach())\n        n += 1", "total.item() / n", ""),
    "a meter": (*METER, "self.total.add_(value * n)"),
    "by what was put elsewhere": (*METER, "self.last.copy_(value * n)\n        self.total.add_(self.last)"),
    "by a name": (*METER, "sums = value * n\n        self.total.add_(sums)"),
}
TOLD = {
    "a mean that goes along": (*METER, "self.total.mul_(0.9).add_(value * n)"),
    "what is computed from sums": (
        *METER,
        "self.total.add_(value * n)\n        self.mean.copy_(self.total / self.count)",
    ),
    "a sum that is set": (*METER, "self.total.copy_(value)\n        self.total.add_(value)"),
    "a greatest value": (*METER, "self.total.add_(value * n)\n        self.last.clamp_(min=value.item())"),
}
LAST = "self.last.copy_(value)\n        self.total.add_(self.last)"


def _text(begin, feed, shown, put, batch=4):
    holes = {"BEGIN": begin, "FEED": feed, "SHOWN": shown, "PUT": put or "pass", "BATCH": str(batch)}
    text = HEAD
    for hole, code in holes.items():
        text = text.replace(hole, code)
    return text


def _of_one(report):
    return [f.message for f in report.findings if "read after this loop" in f.message]


@pytest.mark.parametrize("name", JOINED)
def test_on_two_processes_they_are_those_of_one(convert_text, numbers_printed, name):
    before, after = (_text(*JOINED[name], batch) for batch in (4, 2))
    report, result = convert_text(after)

    assert _of_one(report) == []
    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(before, 1), rel=1e-5)


@pytest.mark.parametrize("name", TOLD)
def test_what_is_no_sum_is_told(convert_text, name):
    report, result = convert_text(_text(*TOLD[name]))

    assert "accelerator.reduce" not in result
    assert _of_one(report) == ["meter, read after this loop, is of one process's share of the data"]


def test_a_meter_that_counts_its_steps_alone_is_told(convert_text):
    source = _text(METER[0], "meter.update(loss.detach())", METER[2], LAST).replace("self.count + n", "self.count + 1")
    report, _ = convert_text(source.replace("value, n=1", "value"))

    assert _of_one(report) == ["meter, read after this loop, is of one process's share of the data"]


TRAINED = {
    "a parameter": (
        "weight = next(model.parameters())",
        "weight.data.add_(loss.detach() * 1e-3)",
        "weight.sum().item()",
    ),
    "a batch": ("seen = 0", "x.add_(loss.detach())", "seen"),
}


@pytest.mark.parametrize("name", TRAINED)
def test_what_is_trained_is_no_sum(convert_text, name):
    _, result = convert_text(_text(*TRAINED[name], ""))

    assert "accelerator.reduce(weight" not in result
    assert "accelerator.reduce(x" not in result
