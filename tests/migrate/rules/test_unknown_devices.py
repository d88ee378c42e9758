"""Models and batches that are put where settings say which nobody knows: it is a device, and may be a GPU."""

PROGRAM = """
import settings
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def noisy(net, rows):
    moved = rows + torch.randn_like(rows) * 0.1
    return (net(moved) - rows).pow(2).mean()


def train(place):
    loader = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8, shuffle=True)
    model = nn.Linear(4, 4).to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        x = x.to(place)
        scaled = lambda rows: model(rows)
        optimizer.zero_grad()
        loss = noisy(scaled, x)
        loss.backward()
        optimizer.step()
    print(next(model.parameters()).device)


def train_plainly(place):
    loader = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8, shuffle=True)
    model = nn.Linear(4, 4).to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        x = x.to(place)
        optimizer.zero_grad()
        loss = noisy(model, x)
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
train(PLACE)
train_plainly(PLACE)
"""
SETTINGS = """
import sys
import types

sys.modules["settings"] = types.SimpleNamespace(load=lambda: types.SimpleNamespace(device="cuda"))
"""


def test_what_is_not_known_may_be_a_gpu(convert_text, on_pretended_gpu):
    _, result = convert_text(PROGRAM.replace("PLACE", "settings.load().device").lstrip())

    assert "cpu=True" not in result
    assert on_pretended_gpu(SETTINGS.lstrip() + result) == "cuda:1\n"


def test_a_type_is_no_place(convert_text):
    report, result = convert_text(PROGRAM.replace("PLACE", "torch.float32").lstrip())

    assert "Accelerator(cpu=True)" in result
    assert any("so the program stays on the CPU" in finding.message for finding in report.findings)
