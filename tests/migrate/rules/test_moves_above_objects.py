"""Moves of a model above the object that prepares it: `model.cuda()`, and then `Trainer(model)`."""

import pytest

SOURCE = """
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, loader):
        {first}
        self.model = model
        self.optimizer = optimizer
        self.loader = loader

    def fit(self):
        for x, y in self.loader:
            loss = nn.functional.mse_loss(self.model(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(TensorDataset(torch.ones(16, 2), torch.ones(16, 1)), batch_size=4)
    {made}
    {between}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {called}
    {last}


main()
"""
CALLED = "Trainer(model, optimizer, loader).fit()"


def source(made="model = nn.Linear(2, 1).cuda()", between="pass", called=CALLED, first="pass", last="pass"):
    return SOURCE.format(made=made, between=between, called=called, first=first, last=last)


@pytest.mark.parametrize(
    ("made", "moved"),
    [
        ("model = nn.Linear(2, 1).cuda()", ".cuda()\n"),
        ("model = nn.Linear(2, 1).to(device)", ".to(device)"),
        ("model = nn.Linear(2, 1)\n    model.to(device)", ".to(device)"),
        ("model = nn.Linear(2, 1)\n    if torch.cuda.is_available():\n        model = model.cuda()", ".cuda()\n"),
    ],
)
def test_the_object_places_the_model(convert_text, made, moved):
    _, changed = convert_text(source(made, between="print(sum(p.numel() for p in model.parameters()))"))
    assert "self.accelerator.prepare(" in changed
    assert moved not in changed
    assert "model = nn.Linear(2, 1)\n" in changed


STAYING = {
    "run before": {"between": "print(model(torch.ones(1, 2).cuda()))"},
    "asked where it is": {"between": "print(next(model.parameters()).device)"},
    "drawn there": {"between": "nn.init.normal_(model.weight)"},
    "copied before": {"between": "teacher = copy.deepcopy(model)", "last": "print(teacher)"},
    "copied by the object": {"first": "self.average = copy.deepcopy(model)"},
    "several objects": {"last": "Trainer(model, optimizer, loader).fit()"},
    "taken away again": {"last": "model.cpu()"},
}


@pytest.mark.parametrize("case", STAYING)
def test_what_needs_it_there_before_keeps_the_move(convert_text, case):
    _, changed = convert_text(source(**STAYING[case]))
    assert "model = nn.Linear(2, 1).cuda()\n" in changed


def test_it_trains_on_processes_as_it_did(convert_text, numbers_printed):
    _, changed = convert_text(source("model = nn.Linear(2, 1).to(device)", last="print(model.weight.sum().item())"))
    whole = numbers_printed(changed, 1)
    assert len(whole) == 1
    halves = numbers_printed(changed.replace("batch_size=4", "batch_size=2"), 2)
    assert halves == pytest.approx(whole, abs=1e-5)  # RANK tells who says it: there is no accelerator at hand
