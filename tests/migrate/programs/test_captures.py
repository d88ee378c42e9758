"""Models that lie in a list, or have a second name, since before they were prepared: these have the raw ones."""

import pytest

TEXT = """
import torch
from torch import nn, optim

one, other = nn.Linear(2, 1), nn.Linear(2, 1)
nets = [one, other]


def clear():
    {clear}


first = optim.SGD(one.parameters(), lr=0.1)
second = optim.SGD(other.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(rows, batch_size=2):
    loss = (one(x) - other(x)).pow(2).mean()
    clear()
    loss.backward()
    first.step()
    second.step()
{after}
"""


@pytest.mark.parametrize(
    "clear",
    [
        "for net in nets:\n        net.zero_grad()",
        "[net.zero_grad() for net in nets]",
        "for p in [p for net in nets for p in net.parameters()]:\n        p.grad = None",
    ],
)
def test_a_list_of_models_that_are_asked_for_their_parameters(decide, clear):
    program, _ = decide(TEXT.format(clear=clear, after=""))

    assert not program.refusals


@pytest.mark.parametrize(
    ("clear", "after"),
    [
        ("for net in nets:\n        net.eval()", ""),
        ("for net in nets:\n        net(rows).sum()", ""),
        ("for net in nets:\n        net.zero_grad()\n    net(rows).sum()", ""),
        ("for net in nets:\n        fill(net)", ""),
        ("for net in nets:\n        net.zero_grad()", "print([net(rows) for net in nets])"),
        ("for net in nets:\n        net.zero_grad()", "print({n: net(rows) for n, net in enumerate(nets)})"),
    ],
)
def test_a_list_of_models_that_are_run(decide, clear, after):
    program, _ = decide(TEXT.format(clear=clear, after=after))

    assert ["is kept here before it is prepared" in refusal.why for refusal in program.refusals] == [True]


TWO_NAMES = """
import torch
from torch import nn, optim


def score(model, x):
    {within}
        return model(x).mean()


detector = nn.Linear(2, 1)
net = detector
optimizer = optim.SGD(net.parameters(), lr=0.1)
for x in torch.utils.data.DataLoader(rows, batch_size=2):
    loss = net(x).pow(2).mean(){and_by_it}
    loss.backward()
    optimizer.step()
print(score(detector, rows))
"""


def test_a_second_name_by_which_a_model_is_only_looked_at(decide):
    program, _ = decide(TWO_NAMES.format(within="with torch.no_grad():", and_by_it=""))

    assert not program.refusals
    assert [model.target for model in program.models] == ["net"]


def test_a_second_name_by_which_a_model_is_trained_too(decide):
    program, _ = decide(TWO_NAMES.format(within="if True:", and_by_it=" + score(detector, -x)"))

    assert ["is kept here before it is prepared" in refusal.why for refusal in program.refusals] == [True]
