"""The device that an environment variable names: `os.environ.get("DEVICE", "cuda")`."""

import pytest

PROGRAM = """\
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
{chosen}
data = TensorDataset(torch.arange(64.0).view(32, 2) / 64, torch.ones(32, 1))
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=8, shuffle=True)
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
print(model.weight.sum().item())
"""
CHOSEN = {
    "a text by default": 'os.environ.get("DEVICE", "cpu")',
    "the other function": 'os.getenv("DEVICE", "cpu")',
    "the best by default": 'os.environ.get("DEVICE", "cuda" if torch.cuda.is_available() else "cpu")',
}


def program(chosen):
    return PROGRAM.format(chosen=f"device = {chosen}")


@pytest.mark.parametrize("name", CHOSEN)
def test_who_names_the_cpu_stays_there(name, convert_text):
    chosen = CHOSEN[name]

    _, text = convert_text(program(chosen))

    assert f'Accelerator(cpu=torch.device({chosen}).type == "cpu")' in text
    assert ".to(device)" not in text


def test_numbers_are_those_of_one_process(convert_text, numbers_printed):
    source = program(CHOSEN["the best by default"])
    _, text = convert_text(source)
    alone = numbers_printed(text, 1)
    assert alone == numbers_printed(source, 1)
    assert numbers_printed(text.replace("batch_size=8", "batch_size=4"), 2) == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("chosen", ['os.environ.get("DEVICE", "auto")', 'os.environ.get("DEVICE", "")'])
def test_a_word_that_names_no_device_may_mean_anything(chosen, convert_text):
    report, _ = convert_text(program(chosen))

    assert {"MIG103"} <= {finding.code for finding in report.findings}
    assert not report.changes
