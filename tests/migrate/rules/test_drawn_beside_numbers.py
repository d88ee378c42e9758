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
