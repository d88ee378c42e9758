"""Optimizers that a function makes anew each time that it is called, for a model that was there before."""

import ast

import pytest

from migrate.programs.conversion import convert
from migrate.programs.program import programs

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
"""
FIT = """
def fit(net, loader, lr):
    opt = optim.SGD(net.parameters(), lr=lr)
    for x, y in loader:
        net(x).sum().backward()
        opt.step()

"""
RETURNED = FIT.replace("opt.step()\n", "opt.step()\n    return net, opt\n")
CHOSEN = FIT.replace(
    "    opt = optim.SGD(net.parameters(), lr=lr)\n",
    "    opt = optim.Adam(net.parameters())\n    if lr > 1:\n        opt = optim.SGD(net.parameters(), lr=lr)\n",
)
SCHEDULED = FIT.replace("    for x", "    steps = optim.lr_scheduler.StepLR(opt, 3)\n    for x").replace(
    "opt.step()", "opt.step()\n        steps.step()"
)
IN_TURN = """
def fit(net, loader, lr):
    opt = optim.SGD(net.parameters(), lr=lr)
    for epoch in range(4):
        for x, y in loader:
            net(x).sum().backward()
            opt.step()
        if epoch == 2:
            opt = optim.SGD(net.parameters(), lr=lr / 5)

"""
GIVEN_BACK = """
def set_rate(opt, done):
    for group in opt.param_groups:
        group["lr"] = 1 - done / 4
    return opt

def fit(net, loader, lr):
    opt = optim.SGD(net.parameters(), lr=lr)
    for epoch in range(4):
        for x, y in loader:
            opt = set_rate(opt, epoch)
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()

"""
MADE = """
def make(net, lr):
    return optim.SGD(net.parameters(), lr=lr)

""" + FIT.replace("optim.SGD(net.parameters(), lr=lr)", "make(net, lr)")
WITH_LOADER = FIT.replace("net, loader, lr", "net, lr").replace("    opt =", "    loader = DataLoader(data)\n    opt =")
TRAINER = """
class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader = net, loader

    def fit(self, lr):
        self.opt = optim.SGD(self.net.parameters(), lr=lr)
        for x, y in self.loader:
            self.step(x)

    def step(self, x):
        self.net(x).sum().backward()
        self.opt.step()

"""
TESTED_BEFORE = """
def test(net, loader):
    with torch.no_grad():
        for x, y in loader:
            print(net(x).sum().item())

held_out = DataLoader(other)
""" + FIT.replace("opt.step()\n", "opt.step()\n    test(net, held_out)\n")
OBJECTS = "loader = DataLoader(data)\nnet = nn.Linear(1, 1)\n"
TWICE = OBJECTS + "fit(net, loader, 0.1)\nfit(net, loader, 0.2)\n"
IN_LOOP = OBJECTS + "for lr in (0.1, 0.2):\n    fit(net, loader, lr)\n"


@pytest.mark.parametrize(
    ("source", "at_home", "anew"),
    [
        (FIT + TWICE, ["loader", "net"], ["opt"]),
        (FIT + IN_LOOP, ["loader", "net"], ["opt"]),
        (FIT + "def main():\n    " + TWICE.replace("\n", "\n    ") + "\nmain()\n", ["loader", "net"], ["opt"]),
        (CHOSEN + TWICE, ["loader", "net"], ["opt"]),
        (MADE + TWICE, ["loader", "net"], ["opt"]),
        (IN_TURN + TWICE, ["loader", "net"], ["opt", "opt"]),
        (
            MADE.split("def fit")[0] + IN_TURN.replace("optim.SGD(net.parameters(), lr=", "make(net, lr=") + TWICE,
            ["loader", "net"],
            ["opt", "opt"],
        ),
        (GIVEN_BACK + TWICE, ["loader", "net"], ["opt"]),
        (SCHEDULED + TWICE, ["loader", "net"], ["opt", "steps"]),
        (WITH_LOADER + "net = nn.Linear(1, 1)\nfit(net, 0.1)\nfit(net, 0.2)\n", ["net"], ["loader", "opt"]),
        (
            RETURNED + OBJECTS + "net, opt = fit(net, loader, 0.1)\nnet, opt = fit(net, loader, 0.2)\n",
            ["loader", "net"],
            ["opt"],
        ),
        (
            TRAINER + "trainer = Trainer(nn.Linear(1, 1), DataLoader(data))\ntrainer.fit(0.1)\ntrainer.fit(0.2)\n",
            ["self.loader", "self.net"],
            ["self.opt"],
        ),
        (
            FIT
            + OBJECTS
            + "try:\n    fit(net, loader, 0.1)\n    save()\nexcept RuntimeError:\n    fit(net, loader, 0.1)\n",
            ["loader", "net"],
            ["opt"],
        ),
        (
            TESTED_BEFORE + OBJECTS + "test(net, held_out)\nfit(net, loader, 0.1)\n",
            ["held_out", "loader", "net"],
            ["opt"],
        ),
    ],
)
def test_the_model_is_prepared_once_and_each_optimizer_where_it_is_made(decide, source, at_home, anew):
    program, conversion = decide(HEAD + source)

    assert not program.refusals
    stages = conversion.placement.stages
    assert [named.target for stage in stages.each for named in stage.objects] == at_home
    assert [named.target for stage in stages.elsewhere for named in stage.objects] == anew


def test_each_of_several_is_prepared_before_it_is_used(decide):
    _, conversion = decide(HEAD + IN_TURN + TWICE)

    first, second = (stage.spot.statement for stage in conversion.placement.stages.elsewhere)
    assert [ast.unparse(each).partition("lr=")[2] for each in (first, second)] == ["lr)", "lr / 5)"]


def test_what_a_function_gives_back_is_no_optimizer_of_its_own(decide):
    _, conversion = decide(HEAD + GIVEN_BACK + TWICE)

    (only,) = (stage.spot.statement for stage in conversion.placement.stages.elsewhere)
    assert ast.unparse(only) == "opt = optim.SGD(net.parameters(), lr=lr)"


def test_one_call_is_still_prepared_where_all_have_a_name(decide):
    _, conversion = decide(HEAD + FIT + OBJECTS + "fit(net, loader, 0.1)\n")

    assert [named.target for named in conversion.placement.stages.first.objects] == ["loader", "net", "opt"]
    assert not conversion.placement.stages.elsewhere


def test_a_layer_that_is_replaced_between_two_trainings(decide):
    program, conversion = decide(
        HEAD + FIT + TWICE.replace("0.1)\n", "0.1)\nnet.weight = nn.Parameter(torch.ones(1, 1))\n")
    )

    assert conversion is None
    assert [refusal.code for refusal in program.refusals] == ["MIG104"]
    assert "a layer of net is replaced here" in program.refusals[0].why


@pytest.mark.parametrize(("package", "codes"), [("runtime", []), ("accelerate", ["MIG109"])])
def test_accelerate_would_take_the_scale_off_once_for_each(analysed, package, codes):
    clipped = FIT.replace(
        "        opt.step", "        nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n        opt.step"
    )
    facts, loops = analysed(HEAD + clipped + TWICE)
    (program,) = programs(facts, loops)

    convert(facts, loops, program, package)

    assert [refusal.code for refusal in program.refusals] == codes
