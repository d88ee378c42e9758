"""Methods that train and that nothing calls, beside those that run: they are left, and do not keep the others."""

import pytest

PROGRAM = """
import sys

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, net):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.net = net.to(self.device)
        self.loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 1)), batch_size=8, shuffle=True)
        {init}

    def train(self):
        {optimizer}
        for x, y in self.loader:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            loss = ((self.net(x) - y) ** 2).mean()
            loss.backward()
            self.optimizer.step()

    def fine_tune(self, {given}):
        optimizer = {other}
        for x, y in {over}:
            x, y = x.to(self.device), y.to(self.device)
            optimizer.zero_grad()
            loss = ((self.net(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()


trainer = Trainer(nn.Linear(4, 1))
{runs}
"""
MADE = "optim.SGD(self.net.parameters(), lr=0.1)"
NEW = "self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)"
IN_TRAIN = {"init": "pass", "optimizer": NEW, "given": "loader", "other": MADE, "over": "loader"}
UNKNOWN_BATCHES = {"init": NEW, "optimizer": "pass", "given": "loader", "other": "self.optimizer", "over": "loader"}
OF_ITS_OWN = {"init": NEW, "optimizer": "pass", "given": "*_", "other": MADE, "over": "self.loader"}
TOGETHER = {"init": NEW, "optimizer": "pass", "given": "*_", "other": "self.optimizer", "over": "self.loader"}


def program(parts, runs="trainer.train()"):
    return PROGRAM.format(**parts, runs=runs).lstrip("\n")


def codes(report):
    return {finding.code for finding in report.findings}


@pytest.mark.parametrize(
    "parts", [IN_TRAIN, UNKNOWN_BATCHES, OF_ITS_OWN], ids=["made in the training", "unknown batches", "of its own"]
)
def test_a_method_that_nothing_calls_is_left_and_the_other_is_converted(convert_text, parts):
    report, result = convert_text(program(parts))

    assert "MIG907" in codes(report)
    train, _, rest = result[result.index("def train") :].partition("def fine_tune")
    assert "self.accelerator.backward(loss)" in train
    assert "            loss.backward()\n" in rest
    assert "cpu=True" not in result


def test_one_that_steps_the_same_optimizer_on_the_same_data_is_converted_with_it(convert_text):
    report, result = convert_text(program(TOGETHER))

    assert "MIG907" not in codes(report)
    assert result.count("self.accelerator.backward(loss)") == 2


@pytest.mark.parametrize(
    "runs",
    [
        "trainer.train()\ntrainer.fine_tune(trainer.loader)",
        "getattr(trainer, sys.argv[1])()",
        "trainer.train()\nprint('fine_tune')",
    ],
    ids=["called", "by a name that is put together", "named in a text"],
)
def test_what_may_run_is_no_idle_method(convert_text, runs):
    report, _ = convert_text(program(IN_TRAIN, runs))

    assert "nothing in the named files calls it: it is left" not in "".join(f.message for f in report.findings)


def test_where_nothing_is_called_nothing_is_idle(convert_text):
    report, _ = convert_text(program(IN_TRAIN, "print(trainer)"))

    assert "nothing in the named files calls it: it is left" not in "".join(f.message for f in report.findings)
