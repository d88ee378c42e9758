"""What a data set counts of what it is asked for: each process counts its own share."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Rows(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.seen, self.counts, self.drawn, self.cache = 0, [0] * 2, [], {{}}

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        {counts}
        return self.x[index] * {scale}, self.y[index]

    def count(self):
        self.seen += 1


torch.manual_seed(0)
data = Rows(torch.randn(16, 2), torch.randn(16, 1))
loader = DataLoader({data}, batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{end}
"""
BY_COUNT = "min(1.0, self.seen / 8)"
TOLD = "counts what the data set gives"


def told(convert_text, **case):
    report, _ = convert_text(PROGRAM.format(**{"scale": "1.0", "data": "data", "end": "", **case}))
    return [finding for finding in report.findings if TOLD in finding.message]


COUNTED = {
    "that it goes by": {"counts": "self.seen += 1", "scale": BY_COUNT},
    "anew": {"counts": "self.seen = self.seen + 1", "scale": BY_COUNT},
    "in a method": {"counts": "self.count()", "scale": BY_COUNT},
    "in a part of the data": {"counts": "self.seen += 1", "scale": BY_COUNT, "data": "Subset(data, range(8))"},
    "that is shown": {"counts": "self.seen += 1", "end": "print(data.seen)"},
    "by labels": {"counts": "self.counts[index % 2] += 1", "end": "print(data.counts)"},
    "in a list": {"counts": "self.drawn.append(index)", "end": "print(len(data.drawn))"},
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_count_of_a_data_set_is_told(convert_text, name):
    assert len(told(convert_text, **COUNTED[name])) == 1


OTHERS = {
    "that nobody reads": {"counts": "self.seen += 1"},
    "a number that is set": {"counts": "self.seen = index", "end": "print(data.seen)"},
    "what is kept for later": {"counts": "self.cache[index] = self.x[index]", "end": "print(len(data.cache))"},
    "a number of its own": {"counts": "seen = 0; seen += 1", "scale": "seen"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_is_told_of_others(convert_text, name):
    assert not told(convert_text, **OTHERS[name])


def test_the_share_of_a_process_is_less_than_all(convert_text, numbers_printed):
    source = PROGRAM.format(counts="self.seen += 1", scale="1.0", data="data", end="print(data.seen)")
    _, result = convert_text(source)

    assert numbers_printed(source, 1) == numbers_printed(result, 1) == [16]
    assert numbers_printed(result.replace("batch_size=4", "batch_size=2"), 2) == [8]
