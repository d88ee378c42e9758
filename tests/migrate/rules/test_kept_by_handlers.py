"""What handlers of a step add to an object that they know by a name of their own: it is one process's share."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Context:
    def __init__(self):
        self.total, self.steps, self.losses = 0.0, 0, []


class Engine:
    def __init__(self):
        self.handlers = {{"step": [], "epoch": []}}
        self.context = Context()

    def on(self, event):
        def register(handler):
            self.handlers[event].append(handler)
            return handler

        return register

    def fire(self, event, loss):
        for handler in self.handlers[event]:
            handler(self.context, loss)


engine = Engine()


@engine.on("step")
def add(held, loss):
    {adds}


@engine.on("epoch")
def show(held, loss):
    {shows}


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 2), torch.randn(16, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    engine.fire("step", loss.item())
engine.fire("epoch", 0.0)
"""
TOLD = "which each step adds to, is of one process's share"


def told(convert_text, adds, shows):
    report, _ = convert_text(PROGRAM.format(adds=adds, shows=shows))
    return [finding for finding in report.findings if TOLD in finding.message]


KEPT = {
    "a sum": ("held.total += loss", "print(held.total / held.steps)"),
    "a list": ("held.losses.append(loss)", "print(sum(held.losses))"),
    "under another name": ("held.total += loss", "mine = held.total; print(mine)"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_handlers_add_up_is_told(convert_text, name):
    assert len(told(convert_text, *KEPT[name])) == 1


OTHERS = {
    "nobody reads it": ("held.total += loss", "print(held.steps)"),
    "it counts steps": ("held.steps += 1", "print(held.steps)"),
    "it is shown where it is": ("print(loss)", "pass"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_is_told_of_others(convert_text, name):
    assert not told(convert_text, *OTHERS[name])


def test_the_share_is_not_the_whole(convert_text, numbers_printed):
    _, result = convert_text(PROGRAM.format(adds="held.total += loss", shows="print(held.total)"))
    (alone,) = numbers_printed(result, 1)

    assert numbers_printed(result.replace("batch_size=4", "batch_size=2"), 2)[0] != pytest.approx(alone, abs=1e-4)
