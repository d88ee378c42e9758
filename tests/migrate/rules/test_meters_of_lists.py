"""Meters that keep a list, and lists of rows: `migrate/programs/shares/meter_lists.py`, `collected.py`, `summed.py`."""

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
"""
STEP = """
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        KEEP
"""
METER = """
class Meter:
    def __init__(self):
        self.values = []
        self.total = 0.0

    def update(self, value):
        PUT

    def mean(self):
        return sum(self.values) / len(self.values)

    def sum(self):
        return sum(self.values)
"""
MEAN = METER[: METER.index("    def sum")]
APPENDED = "self.values.append(value)"
ROW = "rows.append((loss.item(), 2 * loss.item()))"


def _meter(put=APPENDED, fed="loss.item()", meter=MEAN, shown="mean"):
    steps = STEP.replace("KEEP", f"meter.update({fed})")
    return (
        f"{meter.replace('PUT', put)}\nfor epoch in range(2):\n    meter = Meter(){steps}    print(meter.{shown}())\n"
    )


def _rows(shown, keep=ROW):
    return f"for epoch in range(2):\n    rows = []{STEP.replace('KEEP', keep)}    {shown}\n"


JOINED = {
    "a meter": (_meter(), "meter.values"),
    "that asks for the number": (_meter(APPENDED.replace("(value)", "(value.item())"), "loss"), "meter.values"),
    "that adds up, too": (_meter(f"{APPENDED}\n        self.total += value"), "meter.values"),
    "rows": (
        _rows("first, second = zip(*rows)\n    print(sum(first) / len(first), sum(second) / len(second))"),
        "rows",
    ),
    "rows with names": (
        _rows("print(sum(row['loss'] for row in rows) / len(rows))", "rows.append({'loss': loss.item()})"),
        "rows",
    ),
}
TOLD = {
    "a meter that gives its sum": (_meter(meter=METER, shown="sum"), "meter"),
    "a meter that leaves some out": (_meter(f"if value < 9:\n            {APPENDED}"), "meter"),
    "a meter of sums": (_meter(fed="loss.item() * len(x)"), "meter"),
    "a meter of tensors": (_meter(fed="loss.detach()"), "meter"),
    "sums of rows": (_rows("first, second = zip(*rows)\n    print(sum(first), sum(second))"), "rows"),
    "sums of what rows hold": (_rows("print(sum(row[0] for row in rows))"), "rows"),
    "sums by hand": (
        _rows("total = 0\n    for first, second in rows:\n        total += first\n    print(total)"),
        "rows",
    ),
    "rows with a number of the step": (_rows("print(rows[-1])", "rows.append((epoch, loss.item()))"), "rows"),
}
#: What is put together from what a step computes is of one process's share as that is.
MADE = {
    "a list": "[epoch, loss.item()]",
    "text": "f'{epoch}: {loss.item()}'",
    "text by a method": "'{}: {}'.format(epoch, loss.item())",
    "text by an operator": "'%d: %f' % (epoch, loss.item())",
    "rows in rows": "{'epoch': epoch, 'of': {'loss': loss.item()}}",
    "by a call": "dict(epoch=epoch, loss=loss.item())",
    "a record": "Record(epoch, loss.item())",
    "an object": "Kept(epoch, loss.item())",
    "a name": "row",
}
RECORDS = """
from collections import namedtuple
from dataclasses import dataclass

Record = namedtuple("Record", "epoch loss")

@dataclass
class Kept:
    epoch: int
    loss: float

"""


def _text(code, batch=4):
    return HEAD.replace("BATCH", str(batch)) + code


@pytest.mark.parametrize("name", JOINED)
def test_means_are_made_one_number_by_number(convert_text, name):
    code, place = JOINED[name]
    report, result = convert_text(_text(code))

    assert f"{place}[:] = accelerator.reduce({place}, reduction=" in result
    assert not [finding for finding in report.findings if "read after this loop" in finding.message]


@pytest.mark.parametrize("name", TOLD)
def test_what_a_mean_does_not_say_is_told(convert_text, name):
    code, place = TOLD[name]
    report, result = convert_text(_text(code))

    assert "reduction=" not in result
    assert [
        f
        for f in report.findings
        if f.message == f"{place}, read after this loop, is of one process's share of the data"
    ]


@pytest.mark.parametrize("made", MADE)
def test_what_is_made_of_a_number_of_one_process_is_told(convert_text, made):
    row = "row = [epoch, loss.item()]\n        " if made == "a name" else ""
    code = RECORDS + _rows("print(rows)", f"{row}rows.append({MADE[made]})")
    report, _ = convert_text(_text(code))

    assert [f for f in report.findings if f.message.startswith("rows, read after this loop")]


@pytest.mark.parametrize("name", ["a meter", "that adds up, too", "rows"])
def test_on_two_processes_they_are_those_of_one(convert_text, numbers_printed, name):
    before, after = (_text(JOINED[name][0], batch) for batch in (4, 2))
    _, result = convert_text(after)

    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(before, 1), rel=1e-5)
