"""A loop that trains, and that some calls come to without gradients: there it evaluates."""

import pytest

from migrate.report.model import Kind

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Steps:
    def __init__(self, net, stage, optimizer=None):
        self.net, self.stage, self.optimizer = net, stage, optimizer

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.net(x), y)
        if self.optimizer is not None and self.stage == "train":
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    {decorated}
    def measure(self, x, y):
        return self.step(x, y)

    def __call__(self, x, y):
        return self.step(x, y) if self.stage == "train" else self.measure(x, y)


def run(loader, steps):
    total = 0
    for x, y in loader:
        total += steps(x, y)
    return total / len(loader)


torch.manual_seed(0)
data = TensorDataset(torch.randn(18, 4), torch.randn(18, 1))
loader, others = DataLoader(data, 4, shuffle=True), DataLoader(data, 4)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    print(run(loader, Steps(net, "train", optimizer)))
    {evaluated}
"""
EVALUATED = 'print(run(others, Steps(net, "valid")))'
WITHOUT = "with torch.no_grad():\n        "


BY_A_TABLE = """\
    def learn(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.net(x), y)
        dict(train=self.learn, valid=float)[self.stage](loss)
        return loss.item()
"""
#: How the loop is come to, and the line of the call without gradients in a program that learns by a table.
ENTERED = {
    "below it": ("@torch.no_grad()", EVALUATED, 22),
    "in inference": ("@torch.inference_mode()", EVALUATED, 22),
}


LEARNING_BY_A_TABLE = (
    PROGRAM[: PROGRAM.index("    def step(")] + BY_A_TABLE + PROGRAM[PROGRAM.index("\n    {decorated}") :]
)


@pytest.mark.parametrize("name", ENTERED)
def test_a_loop_that_is_come_to_without_gradients_is_refused(convert_text, name):
    decorated, evaluated, line = ENTERED[name]
    report, _ = convert_text(LEARNING_BY_A_TABLE.format(decorated=decorated, evaluated=evaluated))
    (left,) = report.of(Kind.LEFT)
    assert left.code == "MIG114"
    assert f"by turns (without gradients at program.py:{line})" in left.message


@pytest.mark.parametrize("name", ENTERED)
def test_the_flag_is_named_where_one_is_seen(convert_text, name):
    decorated, evaluated, _ = ENTERED[name]
    report, _ = convert_text(PROGRAM.format(decorated=decorated, evaluated=evaluated))
    (left,) = report.of(Kind.LEFT)
    assert left.code == "MIG114"
    assert "by turns (self.optimizer is not None)" in left.message


ATTACKED = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def attack(net, x, y):
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        nn.functional.mse_loss(net(x), y).backward()
    return x.detach() + x.grad.sign()


torch.manual_seed(0)
data = TensorDataset(torch.randn(18, 4), torch.randn(18, 1))
loader = DataLoader(data, 4, shuffle=True)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    with torch.no_grad():
        x = attack(net, x, y)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
"""


def test_gradients_that_are_turned_on_again_are_no_evaluation(convert_text):
    report, _ = convert_text(ATTACKED)
    assert not [left for left in report.of(Kind.LEFT) if "by turns" in left.message]


BY_CLASSES = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Epoch:
    def __init__(self, net, optimizer=None):
        self.net, self.optimizer = net, optimizer

    def run(self, loader):
        total = 0
        for x, y in loader:
            total += self.step(x, y).item()
        return total / len(loader)


class Training(Epoch):
    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.net.forward(x), y)
        loss.backward()
        self.optimizer.step()
        return loss


class {other}(Epoch):
    def step(self, x, y):
        {step}


torch.manual_seed(0)
data = TensorDataset(torch.randn(18, 4), torch.randn(18, 1))
loader, others = DataLoader(data, 4, shuffle=True), DataLoader(data, 4)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
training, second = Training(net, optimizer), {other}(net, optimizer)
for epoch in range(2):
    print(training.run(loader), second.run(others))
"""
STEPS = {
    "Validation": "with torch.no_grad():\n            return nn.functional.mse_loss(self.net.forward(x), y)",
    "Slow": "loss = nn.functional.l1_loss(self.net(x), y)\n        loss.backward()\n        return loss",
}


@pytest.mark.parametrize("other", STEPS)
def test_a_loop_whose_steps_are_those_of_a_class_that_evaluates_is_refused(convert_text, other):
    report, _ = convert_text(BY_CLASSES.format(other=other, step=STEPS[other]))
    left = [each.message for each in report.of(Kind.LEFT) if "by turns" in each.message]
    assert bool(left) is (other == "Validation")
    assert all("its steps by step() at program.py:27 do not train" in message for message in left)


def test_where_the_loop_itself_is_called_without_gradients_these_tell_the_two_apart(convert_text):
    _, text = convert_text(LEARNING_BY_A_TABLE.format(decorated="", evaluated=WITHOUT + EVALUATED))
    assert "    if torch.is_grad_enabled():\n        total = sum(accelerator.gather_for_metrics([total]))" in text
