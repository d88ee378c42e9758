"""Loops that train and evaluate by turns, and the flag that says which."""

import ast

import pytest

from migrate.programs.training.phases import Other, Phase, Phases

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
loader, other = DataLoader(data), DataLoader(data)
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
"""

BY_PHASE = """
for phase in ["train", "val"]:
    for x in loader:
        loss = net(x).sum()
        if {test}:
            loss.backward()
            opt.step()
"""

BY_PARAMETER = """
def run(loader, {parameter}):
    for x in loader:
        loss = net(x).sum()
        if {test}:
            loss.backward()
            opt.step()
{calls}
"""

CASES = {
    "a phase": (BY_PHASE.format(test="phase == 'train'"), "phase", ["train"], ["val"]),
    "a phase that is not another": (BY_PHASE.format(test="phase != 'val'"), "phase", ["train"], ["val"]),
    "one of some phases": (BY_PHASE.format(test="phase in ('train',)"), "phase", ["train"], ["val"]),
    "a parameter": (
        BY_PARAMETER.format(parameter="train=True", test="train", calls="run(loader)\nrun(other, False)"),
        "train",
        [True],
        [False],
    ),
    "a parameter, turned": (
        BY_PARAMETER.format(parameter="test", test="not test", calls="run(loader, False)\nrun(other, test=True)"),
        "test",
        [False],
        [True],
    ),
    "a step that is told": (
        (
            "def step(x, train):\n    loss = net(x).sum()\n    if train:\n        loss.backward()\n"
            "def run(loader, train):\n    for x in loader:\n        step(x, train)\n"
            "run(loader, True)\nrun(other, False)"
        ),
        "train",
        [True],
        [False],
    ),
    "a flag around another": (
        BY_PHASE.format(test="phase == 'train'").replace(
            "loss.backward()",
            "if scaled:\n                loss.backward()\n            else:\n                loss.backward()",
        ),
        "phase",
        ["train"],
        ["val"],
    ),
    "a flag beside another": (
        BY_PARAMETER.format(
            parameter="test=False, scaled=bool(1)",
            test="not test and scaled",
            calls="run(loader)\nrun(other, test=True)",
        ).replace(
            "            opt.step()\n", "            opt.step()\n        elif not test:\n            loss.backward()\n"
        ),
        "test",
        [False],
        [True],
    ),
    "a flag that another one stands before": (
        BY_PARAMETER.format(
            parameter="test", test="test or not x", calls="run(loader, False)\nrun(other, test=True)"
        ).replace(
            "            loss.backward()\n", "            continue\n        else:\n            loss.backward()\n"
        ),
        "test",
        [False],
        [True],
    ),
    "a backward in an expression": (
        BY_PARAMETER.format(parameter="train", test="x", calls="run(loader, True)\nrun(other, False)").replace(
            "            loss.backward()\n", "            loss.backward() if train else None\n"
        ),
        "train",
        [True],
        [False],
    ),
    "a name for the answer": (
        (
            'for phase in ["train", "val"]:\n    learns = phase == "train"\n    for x in loader:\n'
            "        loss = net(x).sum()\n        if learns:\n            loss.backward()"
        ),
        "phase",
        ["train"],
        ["val"],
    ),
    "an optimizer or none": (
        BY_PARAMETER.format(parameter="o=None", test="o is not None", calls="run(loader, opt)\nrun(other)"),
        "o",
        [Other.OBJECT],
        [None],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_mixed_by_a_flag(analysed, name):
    source, subject, trains, evaluates = CASES[name]
    facts, loops = analysed(HEAD + source)
    (loop,) = loops.training
    found = Phases(facts).of(loop)

    assert found.phase is Phase.MIXED
    assert ast.unparse(found.flag.subject) == subject
    assert set(found.flag.trains) == set(trains)
    assert set(found.flag.evaluates) == set(evaluates)
    assert found.flag.complete


SETS_BACK = """
def run(loader, {parameter}):
    {begun}
    for i, x in enumerate(loader):
        loss = net(x).sum()
        if net is None:
            train = False
        if train:
            loss.backward()
            opt.step()
run(loader)
run(other, False)
"""
SET_BACK = {
    "a parameter": SETS_BACK.format(parameter="train=True", begun="pass"),
    "a name for the answer": SETS_BACK.format(parameter="phase=True", begun="train = phase is True"),
    "a name of two values": SETS_BACK.format(
        parameter="phase=True", begun="train = True\n    if not phase:\n        train = False"
    ),
}


@pytest.mark.parametrize("name", SET_BACK)
def test_a_flag_that_a_step_sets_goes_by_what_it_begins_with(analysed, name):
    facts, loops = analysed(HEAD + SET_BACK[name])
    (loop,) = loops.training

    assert Phases(facts).of(loop).phase is Phase.MIXED


PLAIN = {
    "both sides of a flag": (
        "scaler = None\nif wanted:\n    scaler = torch.amp.GradScaler()\nfor x in loader:\n    loss = net(x).sum()\n"
        "    if scaler is None:\n        loss.backward()\n    else:\n        scaler.scale(loss).backward()"
    ),
    "no test": "for x in loader:\n    net(x).sum().backward()",
    "a test on the batch": "for x in loader:\n    loss = net(x).sum()\n    if loss > 0:\n        loss.backward()",
    "a test on a count": "for i, x in enumerate(loader):\n    if i % 2 == 0:\n        net(x).sum().backward()",
    "a flag that steps begin with and end": (
        "train = True\nfor i, x in enumerate(loader):\n    loss = net(x).sum()\n    if i > 3:\n        train = False\n"
        "    if train:\n        loss.backward()"
    ),
    "a flag that steps set first": (
        "skip = True\nfor i, x in enumerate(loader):\n    skip = False\n    if i > 3:\n        skip = True\n"
        "    if not skip:\n        net(x).sum().backward()"
    ),
    "a flag that is always set": BY_PARAMETER.format(parameter="train=True", test="train", calls="run(loader)"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_training(analysed, name):
    facts, loops = analysed(HEAD + PLAIN[name])
    (loop,) = loops.training

    assert Phases(facts).of(loop).phase is Phase.TRAINING


@pytest.mark.parametrize("test", ["flag", "settings.train", "ready()"])
def test_a_test_of_something_unknown_is_not_known(analysed, test):
    facts, loops = analysed(
        f"{HEAD}for x in loader:\n    loss = net(x).sum()\n    if {test}:\n        loss.backward()\n"
    )
    (loop,) = loops.training

    assert Phases(facts).of(loop).phase is Phase.UNKNOWN


def test_a_flag_of_which_nothing_is_known_says_so(analysed):
    facts, loops = analysed(HEAD + BY_PARAMETER.format(parameter="train=True", test="train", calls="run(loader, flag)"))
    (loop,) = loops.training
    flag = Phases(facts).of(loop).flag

    assert flag.trains == (True,)
    assert not flag.complete


def test_functions_that_call_each_other_in_many_ways_are_followed_once(analysed):
    step = "def step(x):\n    net(x).sum().backward()\nfor x in loader:\n    step(x)\ndef on0(x):\n    step(x)\n"
    many = "".join(f"def on{n}(x):\n    on{n - 1}(x)\n    on{n - 1}(x)\n" for n in range(1, 25))
    facts, loops = analysed(f"{HEAD}{step}{many}on24(1)\n")
    (loop,) = loops.training

    assert Phases(facts).of(loop).phase is Phase.TRAINING
