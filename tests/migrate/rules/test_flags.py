"""Loops that a flag makes train or evaluate."""

import pytest

SOURCE = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

{helper}
def run(model, {parameters}):
    total = 0.0
    {choice}
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        {step}
        total += loss.item()
    return total / len(loader)

data = TensorDataset(torch.ones(32, 4), torch.ones(32, 1))
train_loader = DataLoader(data, batch_size=4)
test_loader = DataLoader(data, batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    {calls}
"""
STEP = "optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()"
PLAIN = {
    "helper": "",
    "parameters": "loader, optimizer, train",
    "choice": "model.train(train)",
    "step": f"if train:\n            {STEP}",
    "calls": "run(model, train_loader, optimizer, True)\n    print(run(model, test_loader, optimizer, False))",
}
CONVERTED = {
    "a flag": ({}, "if train:"),
    "a default": (
        {
            "parameters": "loader, optimizer, train=True",
            "calls": "run(model, train_loader, optimizer)\n    print(run(model, test_loader, optimizer, train=False))",
        },
        "if train:",
    ),
    "the opposite": (
        {
            "parameters": "loader, optimizer, evaluate",
            "choice": "model.train(not evaluate)",
            "step": f"if not evaluate:\n            {STEP}",
            "calls": "run(model, train_loader, optimizer, False)\n    print(run(model, test_loader, optimizer, True))",
        },
        "if not evaluate:",
    ),
    "a flag beside another": (
        {
            "parameters": "loader, optimizer, train, scaled=bool(1)",
            "step": f"if train and scaled:\n            {STEP}\n        elif train:\n            {STEP}",
        },
        "if train:",
    ),
    "an optimizer or none": (
        {
            "parameters": "loader, optimizer=None",
            "choice": "model.train(optimizer is not None)",
            "step": f"if optimizer is not None:\n            {STEP}",
            "calls": "run(model, train_loader, optimizer)\n    print(run(model, test_loader))",
        },
        "if optimizer is not None:",
    ),
    "the name of a phase": (
        {
            "parameters": "loader, optimizer, split",
            "choice": 'is_train = split == "train"',
            "step": f"if is_train:\n            {STEP}",
            "calls": 'run(model, train_loader, optimizer, "train")\n'
            '    print(run(model, test_loader, optimizer, "test"))',
        },
        "if is_train:",
    ),
    "a function that steps": (
        {
            "helper": "def step(loss, optimizer, update):\n    if update:\n        optimizer.zero_grad()\n"
            "        loss.backward()\n        optimizer.step()\n",
            "step": "step(loss, optimizer, train)",
        },
        "if train:",
    ),
    "a loader that is chosen": (
        {
            "parameters": "one, other, optimizer, train",
            "choice": "loader = one if train else other",
            "calls": "run(model, train_loader, test_loader, optimizer, True)\n"
            "    print(run(model, train_loader, test_loader, optimizer, False))",
        },
        "if train:",
    ),
    "a loader that is chosen by the other name of a phase": (
        {
            "parameters": "one, other, optimizer, phase",
            "choice": 'loader = other if phase == "val" else one',
            "step": f"if phase == 'train':\n            {STEP}",
            "calls": "for phase in ['train', 'val']:\n"
            "        print(run(model, train_loader, test_loader, optimizer, phase))",
        },
        "if phase == 'train':",
    ),
    "a loop around the call deals both out": (
        {
            "calls": "for rows, is_train in [(train_loader, True), (test_loader, False)]:\n"
            "        print(run(model, rows, optimizer, is_train))",
        },
        "if train:",
    ),
    "a loop around the call takes one out of a dictionary": (
        {
            "parameters": "loader, optimizer, split",
            "choice": 'is_train = split == "train"',
            "step": f"if is_train:\n            {STEP}",
            "calls": 'loaders = {"train": train_loader, "test": test_loader}\n'
            '    for phase in ["train", "test"]:\n        print(run(model, loaders[phase], optimizer, phase))',
        },
        "if is_train:",
    ),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_only_what_is_trained_on_is_prepared(convert_text, name):
    holes, test = CONVERTED[name]
    report, result = convert_text(SOURCE.format(**{**PLAIN, **holes}))
    assert "train_loader, model, optimizer = accelerator.prepare(train_loader, model, optimizer)" in result
    joined = f"    {test}\n        total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes\n"
    assert joined in result
    assert any("only what it trains on is shared out" in finding.message for finding in report.findings)


def test_a_default_that_no_call_leaves_is_no_way_to_evaluate(convert_text):
    holes = {
        "parameters": "loader, optimizer=None",
        "choice": "model.train()",
        "step": f"if optimizer is not None:\n            {STEP}",
        "calls": "print(run(model, train_loader, optimizer))",
    }
    report, result = convert_text(SOURCE.format(**{**PLAIN, **holes}))
    assert "accelerator.backward(loss)" in result
    assert "MIG114" not in {finding.code for finding in report.findings}


REFUSED = {
    "evaluated on the training data, too": {
        "calls": "run(model, train_loader, optimizer, True)\n    print(run(model, test_loader, optimizer, False))\n"
        "    print(run(model, train_loader, optimizer, False))"
    },
    "a loop around the call deals the training data out to be evaluated": {
        "calls": "for rows, is_train in [(train_loader, True), (test_loader, False), (train_loader, False)]:\n"
        "        print(run(model, rows, optimizer, is_train))",
    },
    "a loop around the call, which does not tell which is which": {
        "calls": "for rows in [train_loader, test_loader]:\n"
        "        for is_train in [True, False]:\n            print(run(model, rows, optimizer, is_train))",
    },
    "a flag of the command line": {
        "helper": "import sys\nFLAG = len(sys.argv) > 1\n",
        "calls": "run(model, train_loader, optimizer, FLAG)\n    print(run(model, test_loader, optimizer, False))",
    },
    "a loader that is chosen by the name of a third phase": {
        "parameters": "one, other, optimizer, phase",
        "choice": 'loader = other if phase == "test" else one',
        "step": f"if phase == 'train':\n            {STEP}",
        "calls": "for phase in ['train', 'val']:\n"
        "        print(run(model, train_loader, test_loader, optimizer, phase))",
    },
    "an optimizer or none, on the same data": {
        "parameters": "loader, optimizer=None",
        "choice": "model.train(optimizer is not None)",
        "step": f"if optimizer is not None:\n            {STEP}",
        "calls": "run(model, train_loader, optimizer)\n    print(run(model, test_loader))\n"
        "    print(run(model, train_loader))",
    },
    "a loader that is chosen by something else": {
        "parameters": "one, other, optimizer, train",
        "choice": "loader = one if epoch else other",
        "calls": "run(model, train_loader, test_loader, optimizer, True)\n"
        "    print(run(model, train_loader, test_loader, optimizer, False))",
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_told_apart(refused_text, name):
    refused_text(SOURCE.format(**{**PLAIN, **REFUSED[name]}), "MIG114", "for x, y in loader", ("by turns",))


def test_a_progress_bar_is_as_long_as_its_loader(convert_text):
    source = SOURCE.format(**PLAIN).replace("    for x, y in loader:", "    for i, (x, y) in bar:")
    source = source.replace(
        "    model.train(train)\n", "    model.train(train)\n    bar = tqdm(enumerate(loader), total=len(loader))\n"
    )
    source = source.replace("total / len(loader)", "total / len(bar)").replace(
        "import torch\n", "import torch\nfrom tqdm import tqdm\n", 1
    )
    _, result = convert_text(source)
    assert (
        "    if train:\n        total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes\n"
        in result
    )
    assert "train_loader, model, optimizer = accelerator.prepare(train_loader, model, optimizer)" in result
