"""Trainers that are made of fields: what their `__post_init__` sets up is prepared there, as in an `__init__`."""

import pytest

SOURCE = """
import copy
from dataclasses import InitVar, dataclass, replace

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))


{decorator}
class Trainer:
    {fields}
    lr: float = 0.1

    {method}
        {first}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.lr)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for x, y in self.loader:
                x, y = x.to(device), y.to(device)
                loss = nn.functional.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(loss.item())


{below}


def main():
    model = nn.Linear(4, 1)
    loader = DataLoader(data, batch_size={size})
    {run}


main()
"""
HOLES = {
    "decorator": "@dataclass",
    "fields": "model: nn.Module\n    loader: DataLoader",
    "method": "def __post_init__(self):",
    "first": "self.model.to(device)",
    "below": "",
}
ANONYMOUS = "Trainer(nn.Linear(4, 1), DataLoader(data, batch_size={size})).fit(2)"
DERIVED = """
@dataclass
class Wide(Trainer):
    decay: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        self.steps = 0
"""
CONVERTED = {
    "made without a name": {"run": ANONYMOUS},
    "made in each round": {
        "run": "for lr in (0.1, 0.2):\n        Trainer(nn.Linear(4, 1), DataLoader(data, batch_size={size}), lr).fit(2)"
    },
    "the model is only handed to it": {
        "fields": "loader: DataLoader\n    net: InitVar[nn.Module]",
        "method": "def __post_init__(self, net):",
        "first": "self.model = net.to(device)",
        "run": "Trainer(DataLoader(data, batch_size={size}), nn.Linear(4, 1)).fit(2)",
    },
    "a class derived from it": {"below": DERIVED, "run": ANONYMOUS.replace("Trainer", "Wide")},
    "its objects have names above": {"run": "trainer = Trainer(model, loader)\n    trainer.fit(2)"},
    "makes all itself": {
        "fields": "wide: int = 4",
        "first": "self.model = nn.Linear(self.wide, 1).to(device)\n"
        "        self.loader = DataLoader(data, batch_size={size})",
        "run": "Trainer().fit(2)",
    },
}


def _source(size, **holes):
    filled = {**HOLES, **holes}
    return SOURCE.format(**{name: text.replace("{size}", str(size)) for name, text in filled.items()}, size=size)


@pytest.mark.parametrize("name", CONVERTED)
def test_it_trains_as_before(convert_text, numbers_printed, name):
    holes = CONVERTED[name]
    before = numbers_printed(_source(8, **holes), 1)
    _, whole = convert_text(_source(8, **holes))
    _, half = convert_text(_source(4, **holes))

    assert "accelerator.backward(loss)" in whole
    assert numbers_printed(whole, 1) == before
    assert numbers_printed(half, 2) == pytest.approx(before, rel=1e-4)


REFUSED = {
    "the same model in two": (
        {"run": "for lr in (0.1, 0.2):\n        Trainer(model, DataLoader(data, batch_size=4), lr).fit(2)"},
        "MIG901",
        "for x, y in",
        "with the same model",
    ),
    "made anew of the fields of another": (
        {"run": "trainer = Trainer(model, loader)\n    trainer.fit(1)\n    replace(trainer, lr=0.2).fit(1)"},
        "MIG901",
        "for x, y in",
        "with the same model",
    ),
    "no place for the accelerator": (
        {
            "decorator": "@dataclass(slots=True)",
            "fields": "model: nn.Module\n    loader: DataLoader\n    optimizer: object = None",
            "run": ANONYMOUS,
        },
        "MIG104",
        "class Trainer",
        "slots",
    ),
    "another loader later": (
        {"run": "run = Trainer(model, loader)\n    run.fit(1)\n    run.loader = DataLoader(data)\n    run.fit(1)"},
        "MIG901",
        "for x, y in",
        "loader",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_hold_is_refused(refused_text, name):
    holes, code, at, mention = REFUSED[name]

    refused_text(_source(4, **holes), code, at, (mention,))


FROZEN = """
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Bundle:
    model: nn.Module
    loader: DataLoader


bundle = Bundle(nn.Linear(4, 1).cuda(), DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4))
optimizer = torch.optim.SGD(bundle.model.parameters(), lr=0.1)
for x, y in bundle.loader:
    loss = nn.functional.mse_loss(bundle.model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_is_frozen_takes_nothing_that_is_prepared(refused_text, convert_text):
    refused_text(FROZEN, "MIG104", "class Bundle", ("frozen",))

    _, result = convert_text(FROZEN.replace("(frozen=True)", ""))
    assert "bundle.loader, bundle.model, optimizer = accelerator.prepare(" in result


def test_its_loader_is_not_read_raw_by_others(convert_text, numbers_printed):
    """`main` goes over the loader and the model that it has handed on: both are prepared there."""
    run = """trainer = Trainer(model, loader)
    trainer.fit(1)
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += (model(x.to(device)) - y.to(device)).abs().sum().item()
    print(total)"""
    _, half = convert_text(_source(4, run=run))

    assert numbers_printed(half, 2) == pytest.approx(numbers_printed(_source(8, run=run), 1), rel=1e-4)
