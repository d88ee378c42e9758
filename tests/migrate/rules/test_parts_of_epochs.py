"""Epochs that end after a number of samples: each process takes as many batches, which a note says."""

import re

import pytest

PROGRAM = """\
import argparse
from itertools import islice
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
args = parser.parse_args([])
torch.manual_seed(0)
samples = 32
data = TensorDataset(torch.randn(64, 2), torch.randn(64, 1))
loader = DataLoader(data, batch_size=args.batch_size)
model = nn.Linear(2, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = {steps}
seen = 0
for epoch in range(1):
    {start}
    for {over}:
        {take}
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(model.weight.sum().item())
"""
BY_SIZE = "samples // args.batch_size"
CASES = {
    "by islice": {"over": "x, y in islice(loader, steps)"},
    "by islice from the start": {"over": "i, (x, y) in enumerate(islice(loader, 0, steps))"},
    "beside a range": {"over": "_, (x, y) in zip(range(steps), loader)"},
    "by next": {"start": "batches = iter(loader)", "over": "_ in range(steps)", "take": "x, y = next(batches)"},
    "by break": {"over": "i, (x, y) in enumerate(loader)", "take": "if i >= steps:\n            break"},
    "a part of the data": {"over": "x, y in islice(loader, steps)", "steps": "int(0.5 * len(data)) // args.batch_size"},
}


def filled(case):
    return PROGRAM.format(**{"steps": BY_SIZE, "start": "", "take": "", **case})


def told(report):
    return [finding for finding in report.findings if "N times the samples" in finding.message]


@pytest.mark.parametrize("name", CASES)
def test_it_is_told_of_a_number_that_goes_by_the_size_of_a_batch(convert_text, name):
    report, _ = convert_text(filled(CASES[name]))

    assert len(told(report)) == 1
    assert not [finding for finding in report.findings if "waits for a batch" in finding.message]


PLAIN = {"1000 // 8": 1, "SIZE": 1, "1000 // 16": 0, "len(data) // 8": 0, "len(loader) // 8": 0}


@pytest.mark.parametrize("steps", PLAIN)
def test_it_is_told_of_plain_numbers_too(convert_text, steps):
    source = filled({"over": "x, y in islice(loader, steps)", "steps": steps.replace("SIZE", "1000 // SIZE")})
    source = source.replace("batch_size=args.batch_size", "batch_size=8" if "SIZE" not in steps else "batch_size=SIZE")
    report, _ = convert_text(source.replace("samples = 32", "SIZE = 8"))

    assert len(told(report)) == PLAIN[steps]


OTHERS = {
    "all the data": {"over": "x, y in islice(loader, steps)", "steps": "len(data) // args.batch_size"},
    "a part of the share": {"over": "x, y in islice(loader, steps)", "steps": "len(loader) // 2"},
    "a number": {"over": "x, y in islice(loader, steps)", "steps": "4"},
    "a number of something else": {"over": "x, y in loader", "steps": BY_SIZE},
}


@pytest.mark.parametrize("name", OTHERS)
def test_it_is_not_told_of_others(convert_text, name):
    assert not told(convert_text(filled(OTHERS[name]))[0])


@pytest.mark.parametrize("name", ["by islice", "by next", "by break"])
def test_what_the_note_says_is_the_way_out(convert_text, numbers_printed, name):
    source = filled(CASES[name])
    _, result = convert_text(source)
    half = result.replace("default=8", "default=4")
    ways = re.sub(r"^steps = (.*)$", r"steps = \1 // accelerator.num_processes", half, flags=re.MULTILINE)
    (alone,) = numbers_printed(source, 1)

    assert numbers_printed(half, 2)[0] != pytest.approx(alone, abs=1e-6)
    assert numbers_printed(ways, 2)[0] == pytest.approx(alone, abs=1e-6)
