"""Models, loaders and optimizers that are kept among the settings: `args.model`, `SimpleNamespace(model=model)`."""

import pytest

SOURCE = """
import argparse
import copy
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))


def train(args):
    for epoch in range(2):
        args.model.train()
        for x, y in args.loader:
            x, y = x.to(device), y.to(device)
            loss = nn.functional.mse_loss(args.model(x), y)
            args.optimizer.zero_grad()
            loss.backward()
            args.optimizer.step()
        print(loss.item())


{above}


def main():
    {made}
    {run}


main()
"""
ARGUMENTS = "args = argparse.ArgumentParser().parse_args()"
SET = """{args}.model = nn.Linear(4, 1).to(device)
    {args}.optimizer = torch.optim.SGD({args}.model.parameters(), lr=0.1)
    {args}.loader = DataLoader(data, batch_size=SIZE)"""
BY_ITS_FUNCTION = f"def build(args):\n    {SET.format(args='args')}"
HOLES = {"above": "", "run": "train(args)"}
KEPT = {
    "argparse": {"made": f"{ARGUMENTS}\n    {SET.format(args='args')}"},
    "set by a function": {"above": BY_ITS_FUNCTION, "made": f"{ARGUMENTS}\n    build(args)"},
    "a namespace": {"made": f"args = SimpleNamespace(rate=0.1)\n    {SET.format(args='args')}"},
    "made with what has a name": {
        "made": "model = nn.Linear(4, 1).to(device)\n"
        "    args = SimpleNamespace(\n"
        "        model=model,\n"
        "        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),\n"
        "        loader=DataLoader(data, batch_size=SIZE),\n"
        "    )"
    },
}


def _source(size, **holes):
    return SOURCE.format(**{**HOLES, **holes}).replace("SIZE", str(size))


@pytest.mark.parametrize("name", KEPT)
def test_they_are_prepared_where_they_are_kept(convert_text, numbers_printed, name):
    """`model` was prepared, where it has a name, and the settings went on with the raw one."""
    before = numbers_printed(_source(8, **KEPT[name]), 1)
    _, alone = convert_text(_source(8, **KEPT[name]))
    _, shared = convert_text(_source(4, **KEPT[name]))

    assert "prepare(" in alone
    assert numbers_printed(alone, 1) == before
    assert numbers_printed(shared, 2) == pytest.approx(before, rel=1e-4)


REFUSED = {
    "saved with them": (
        {"run": "train(args)\n    torch.save({'args': args}, 'run.pt')"},
        "MIG115",
        "torch.save",
        "as a whole",
    ),
    "other settings hold them, too": (
        {"run": "mine = argparse.Namespace(**vars(args))\n    train(mine)"},
        "MIG901",
        "for x, y in",
        "",
    ),
    "made anew": (
        {"run": f"train(args)\n    {SET.format(args='args')}\n    train(args)"},
        "MIG104",
        "args.model = nn",
        "anew",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_goes_on_with_the_raw_ones_is_refused(refused_text, name):
    holes, code, at, mention = REFUSED[name]

    refused_text(_source(4, **KEPT["argparse"], **holes), code, at, (mention,))


BELOW = """
class Step:
    def __init__(self, args):
        self.net = args.model

    def loss(self, x, y):
        return nn.functional.mse_loss(self.net(x.to(device)), y.to(device))
"""
SET_BELOW = f"""{ARGUMENTS}
    args.model = nn.Linear(4, 1).to(device)
    step = Step(args)
    args.optimizer = torch.optim.SGD(args.model.parameters(), lr=0.1)
    args.loader = DataLoader(data, batch_size=4)
    for x, y in args.loader:
        loss = step.loss(x, y)
        args.optimizer.zero_grad()
        loss.backward()
        args.optimizer.step()"""


def test_what_they_get_below_a_call_is_not_prepared_in_it(convert_text):
    """`Step.__init__` prepared `args.loader`, which was not there yet."""
    _, result = convert_text(_source(4, above=BELOW, made=SET_BELOW, run="print(args.model)"))

    assert "args.loader, " not in result.partition("def loss")[0]
