"""Loops that go over a loader without a model: above prepare, below it, and beside the home."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

def fit(net, loader):
    opt = optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        net(x).sum().backward()
        opt.step()
    {inside}

def count(loader):
    seen = 0
    for x, y in loader:
        seen += len(x)
    return seen

class Counted:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return iter(self.loader)

loader = DataLoader(data, shuffle=True)
{above}
{handed}
net = nn.Linear(1, 1)
fit(net, {given})
{below}
"""
LOOP = "for x, y in loader:\n    seen.append(len(x))"


def program(*, above="", below="", inside="", handed="", given="loader"):
    return PROGRAM.format(above=above, below=below, inside=inside, handed=handed, given=given)


@pytest.mark.parametrize("where", ["above", "below"])
@pytest.mark.parametrize("look", [LOOP, "print(count(loader))"])
def test_a_script_goes_over_the_loader_that_it_hands_on_as_it_was(decide, where, look):
    _, conversion = decide(program(**{where: look}))

    assert not conversion.shared
    assert [named.target for named in conversion.placement.stages.first.objects] == ["loader", "net", "opt"]


def test_a_loader_that_an_object_holds_is_gathered_below(decide):
    handed = {"handed": "held = Counted(loader)", "given": "held"}
    _, conversion = decide(program(below="print(count(held))", **handed))

    (shared,) = conversion.shared
    assert (*shared.names, *shared.lists) == ("x",)


def test_one_function_that_meets_both_has_the_model_and_the_loader_prepared_once_and_above(decide):
    _, conversion = decide(program(inside="print(count(loader))", below="print(count(loader))"))

    assert [named.target for named in conversion.placement.stages.first.objects] == ["loader", "net"]
    assert [named.target for stage in conversion.placement.stages.elsewhere for named in stage.objects] == ["opt"]
    (shared,) = conversion.shared
    assert shared.without_gradients


def test_below_a_prepare_that_must_be_early_it_is_an_evaluation(decide):
    twice = program(handed="held = Counted(loader)\n" + LOOP, given="held") + "fit(net, held)\n"
    _, conversion = decide(twice)

    first, second = conversion.placement.stages.each
    assert [named.target for named in first.objects] == ["loader"]
    assert [named.target for named in second.objects] == ["net"]
    (shared,) = conversion.shared
    assert shared.loop.node.lineno > first.end


def test_refused_where_it_meets_both_and_nothing_can_be_prepared_above(decide):
    source = program(inside="print(count(loader))", below="print(count(loader))")
    found, conversion = decide(source.replace("net = nn.Linear(1, 1)\nfit(net, ", "fit(nn.Linear(1, 1), "))

    assert conversion is None
    assert [refusal.code for refusal in found.refusals] == ["MIG114"]
    assert "as that was before prepare, at times" in found.refusals[0].why


TRAINER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader = net, loader
        self.opt = optim.SGD(net.parameters(), lr=0.1)

    def fit(self):
        for x, y in self.loader:
            self.net(x).sum().backward()
            self.opt.step()

loader = DataLoader(data, shuffle=True)
for x, y in loader:
    seen.append(len(x))
trainer = Trainer(nn.Linear(1, 1), loader)
trainer.fit()
"""


def test_above_the_object_that_prepares_it_the_loader_is_raw(decide):
    _, conversion = decide(TRAINER)

    assert conversion.program.start.name == "__init__"
    assert not conversion.shared
