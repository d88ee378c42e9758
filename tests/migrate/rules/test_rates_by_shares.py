"""What an optimizer or a scheduler is made with must not be one process's own: each would step at a rate of its own."""

import pytest

FINDING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(64, 2)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size={size}, shuffle=True)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.MSELoss()
tried = []
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    {step}
{found}
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
print(round(model.weight.sum().item(), 6), {shown})
"""
LARGEST = "tried.append((x.abs().max().item(), loss.item()))"
OWN = {
    "an optimizer": "optimizer = torch.optim.SGD(model.parameters(), lr=min(tried)[0] / 20)",
    "under a name": "rate = min(tried)[0] / 20\noptimizer = torch.optim.SGD(model.parameters(), lr=rate)",
    "a group": "rate = min(tried)[0] / 20\noptimizer = torch.optim.SGD([{'params': model.parameters(), 'lr': rate}])",
    "a scheduler": "schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 1 - min(tried)[0] / 20)",
    "in a function": "def make(rate):\n    return torch.optim.SGD(model.parameters(), lr=rate)\n"
    "optimizer = make(min(tried)[0] / 20)",
}


@pytest.mark.parametrize("name", OWN)
def test_what_is_made_with_a_share_is_refused(refused_text, name):
    at = OWN[name].splitlines()[1] if "def make" in OWN[name] else OWN[name].splitlines()[-1]
    source = FINDING.format(size=8, step=LARGEST, found=OWN[name], shown="len(tried)")
    refused_text(source, "MIG122", at.strip(), ["differs between processes: they would part ways"])


def test_a_scheduler_of_such_an_optimizer_is_no_second_reason(refused_text):
    found = f"{OWN['an optimizer']}\nschedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)"
    source = FINDING.format(size=8, step=LARGEST, found=found, shown="len(tried)")
    refused_text(source, "MIG122", OWN["an optimizer"], ["torch.optim.SGD() here goes by tried"])


def test_what_is_made_with_the_mean_is_that_of_one_process(convert_text, numbers_printed):
    found = "rate = total / len(loader) / 10\noptimizer = torch.optim.SGD(model.parameters(), lr=rate)"
    text = FINDING.replace("tried = []", "total = 0.0")
    alone = text.format(size=8, step="total += loss.item()", found=found, shown="rate")
    _, halves = convert_text(text.format(size=4, step="total += loss.item()", found=found, shown="rate"))

    assert numbers_printed(halves, 2) == pytest.approx(numbers_printed(alone, 1), abs=1e-5)


def test_what_is_made_with_a_number_of_all_is_converted(convert_text):
    found = "optimizer = torch.optim.SGD(model.parameters(), lr=1 / len(tried))"
    report, result = convert_text(FINDING.format(size=8, step=LARGEST, found=found, shown="len(tried)"))

    assert report.changes
    assert result.count("accelerator.prepare(") == 2
