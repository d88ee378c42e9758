"""Static methods, and those of a class, see no object that could have the accelerator: they are handed it."""

import pytest

PROGRAM = """
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Work:
    {kind}
    def folder({itself}name):
        if not os.path.exists(name):
            os.makedirs(name)
            print("made", name)
        return name

    {trains}
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        model = nn.Linear(2, 1).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        {call}
        for x, y in loader:
            loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


{run}
"""
KINDS = {"static": ("@staticmethod", ""), "of the class": ("@classmethod", "cls, ")}


@pytest.mark.parametrize("name", KINDS)
def test_a_method_that_an_object_calls_is_handed_the_accelerator(convert_text, name):
    kind, itself = KINDS[name]
    trains, call = "def __init__(self):", 'self.path = self.folder("logs")'
    _, result = convert_text(PROGRAM.format(kind=kind, itself=itself, trains=trains, call=call, run="Work()"))

    assert f"def folder({itself}name, accelerator):" in result
    assert "and accelerator.is_main_process:" in result
    assert 'self.folder("logs", self.accelerator)' in result


@pytest.mark.parametrize("name", KINDS)
def test_a_training_without_an_object_keeps_the_accelerator_under_a_name(convert_text, name):
    kind, itself = KINDS[name]
    trains = f"{kind}\n    def train({itself.strip(', ')}):"
    call = 'Work.folder("logs")'
    _, result = convert_text(PROGRAM.format(kind=kind, itself=itself, trains=trains, call=call, run="Work.train()"))

    assert "        accelerator = Accelerator()\n" in result
    assert "self." not in result
