"""Data sets that draw a sample whatever number they are asked for: only the numbers are shared out."""

import pytest

SOURCE = """
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return 64

    def pick(self):
        return random.sample(range(len(self.rows)), 2)

    def __getitem__(self, index):
        {chosen}
        return self.rows[i] - self.rows[j], self.rows[i].sum()


random.seed(0)
torch.manual_seed(0)
loader = DataLoader(Pairs(torch.randn(32, 4)), batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = (model(x).squeeze(1) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("chosen", ["i, j = random.sample(range(32), 2)", "i, j = self.pick()"])
def test_what_all_processes_draw_alike_is_told(convert_text, chosen):
    report, changed = convert_text(SOURCE.format(chosen=chosen))
    assert "accelerator.prepare(" in changed
    (told,) = (finding for finding in report.findings if finding.code == "MIG903")
    assert "every process draws the same samples: __getitem__() does not go by `index`" in told.message


@pytest.mark.parametrize(
    "chosen",
    [
        "i, j = index % 32, random.randrange(32)",
        "i, j = random.Random(index).sample(range(32), 2)",
        "i, j = 0, 1",
    ],
)
def test_what_goes_by_the_number_is_not(convert_text, chosen):
    report, _ = convert_text(SOURCE.format(chosen=chosen))
    assert "MIG903" not in {finding.code for finding in report.findings}


READING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

with open("rows.txt", "w") as file:
    for number in range(16):
        print(number, number * number % 7, file=file)


class Lines(Dataset):
    def __init__(self):
        self.file, self.at = open("rows.txt"), 0
        self.rows = [[float(each) for each in line.split()] for line in open("rows.txt")]

    def __len__(self):
        return 16

    def following(self):
        self.at += 1
        return self.rows[self.at % 16]

    def read(self):
        line = self.file.readline()
        if not line:
            self.file.seek(0)
            line = self.file.readline()
        return [float(each) for each in line.split()]

    def __getitem__(self, number):
        {given}
        return torch.tensor(row[:1]) / 16, torch.tensor(row[1:])


data = {data}
loader = DataLoader(data, batch_size=4)
lines = DataLoader(Lines(), batch_size=4)
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in loader:
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
total = 0.0
with torch.no_grad():
    for x, y in lines:
        output = model(x)
        total += (y * x).sum().item()
print(total)
"""
TAKEN = {
    "the next line": "row = self.read()",
    "the next one of a list": "row = self.following()",
    "whatever it is, but for its end": "if number >= 16: raise IndexError\n        row = self.read()",
}
EVALUATED = "TensorDataset(torch.rand(16, 1), torch.rand(16, 1))"


@pytest.mark.parametrize("name", TAKEN)
def test_what_all_processes_read_alike_is_told(convert_text, name):
    report, _ = convert_text(READING.format(given=TAKEN[name], data="Lines()"))
    (told,) = (finding for finding in report.findings if finding.code == "MIG903")

    assert "every process takes the same samples, one after the other" in told.message


@pytest.mark.parametrize("name", TAKEN)
def test_every_process_evaluates_all_that_comes(convert_text, numbers_printed, name):
    source = READING.format(given=TAKEN[name], data=EVALUATED)
    report, result = convert_text(source)
    told = [finding.message for finding in report.findings if "runs this evaluation in full" in finding.message]

    assert "MIG903" not in {finding.code for finding in report.findings}
    assert "Lines.__getitem__ gives what comes next, whatever its number is" in told[0]
    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(source, 1))


NUMBERED = {
    "by its number": "row = self.rows[number]",
    "the same each time": "row = self.rows[0]",
    "and it counts": "self.at += 1\n        row = self.rows[number]",
}


@pytest.mark.parametrize("name", NUMBERED)
def test_what_does_not_go_on_is_shared_out(convert_text, numbers_printed, name):
    source = READING.format(given=NUMBERED[name], data="Lines()")
    report, result = convert_text(source)

    assert "gather_for_metrics" in result
    assert "MIG903" not in {finding.code for finding in report.findings}
    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(source, 1))
