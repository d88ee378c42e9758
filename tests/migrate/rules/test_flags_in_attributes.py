"""Flags that a step sets by its own batch, in attributes: the processes would not agree on what goes by them."""

import textwrap

import pytest

PROGRAM = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)
        self.stop, self.low = False, 0

    def check(self):
{check}

    def fit(self):
        stop = False
        for epoch in range(4):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                self.loss = loss
                loss.backward()
                self.optimizer.step()
{step}
            if {asked}:
                break


trainer = Trainer(nn.Linear(2, 1), DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4))
trainer.fit()
print(trainer.model.weight.sum().item())
"""
SET = {
    "an attribute": ("if loss.item() < 0.1:\n    self.stop = True", "self.stop"),
    "by an attribute": ("if self.loss.item() < 0.1:\n    stop = True", "stop"),
    "a count": ("if loss.item() < 0.1:\n    self.low += 1", "self.low"),
    "a count that is written out": ("if loss.item() < 0.1:\n    self.low = self.low + 1", "self.low"),
    "by what it was": ("if loss.item() < 0.1:\n    stop = stop or True", "stop"),
    "the greater of two": ("if loss.item() < 0.1:\n    stop = max(stop, True)", "stop"),
    "beside a number of its own": (
        "if loss.item() < self.low:\n    self.low, stop = loss.item(), epoch > 2",
        "stop",
    ),
    "when it was": ("if loss.item() < 0.1:\n    self.low = epoch", "self.low"),
}


def program(step, asked, check="pass"):
    return PROGRAM.format(check=textwrap.indent(check, " " * 8), step=textwrap.indent(step, " " * 16), asked=asked)


@pytest.mark.parametrize("name", SET)
def test_what_is_set_in_the_step(name, refused_text):
    step, asked = SET[name]
    refused_text(program(step, asked), "MIG122", f"if {asked}:", [f"`break` here goes by {asked}"])


def test_what_a_method_sets_that_the_step_calls(refused_text):
    check = "if self.loss.item() < 0.1:\n    self.stop = True"
    refused_text(
        program("self.check()", "self.stop", check), "MIG122", "if self.stop:", ["`break` here goes by self.stop"]
    )


AGREED = {
    "what all do alike": ("if epoch > 1:\n    self.stop = True", "self.stop"),
    "what nobody goes by": ("if loss.item() < 0.1:\n    self.low += 1", "self.stop"),
}


@pytest.mark.parametrize("name", AGREED)
def test_what_they_agree_on(name, convert_text, numbers_printed):
    source = program(*AGREED[name])
    report, text = convert_text(source)
    assert report.changes
    halves = text.replace("batch_size=4", "batch_size=2")
    halves = halves.replace("trainer = Trainer(", "torch.manual_seed(0)\ntrainer = Trainer(")
    alone = numbers_printed(halves.replace("batch_size=2", "batch_size=4"), 1)
    assert numbers_printed(halves, 2) == pytest.approx(alone, rel=1e-5)
