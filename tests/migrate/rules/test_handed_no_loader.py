"""A training loop that one script hands a loader, and another an object of the project's own that it runs over."""

import pytest

from migrate.report.model import Kind

TRAINER = """\
class Trainer:
    def __init__(self, model, data, optimizer):
        self.model = model
        self.data = data
        self.optimizer = optimizer

    def train(self):
        total = 0.0
        for x, y in self.data:
            self.optimizer.zero_grad()
            loss = (self.model(x) - y).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        print(total)
"""
HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trainer import Trainer

"""
TAIL = """
torch.manual_seed(0)
model = nn.Linear(4, 1)
Trainer(model, {data}, torch.optim.SGD(model.parameters(), lr=0.1)).train()
"""
LOADER = "DataLoader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), batch_size=4)"
PAIRS = """
class Pairs:
    def __init__(self, held):
        self.held = held

    def __iter__(self):
        {runs}
"""
MAKES = PAIRS.format(runs="for _ in range(4):\n            yield torch.ones(self.held, 4), torch.ones(self.held, 1)")
GOES_OVER = PAIRS.format(runs="yield from self.held")
SHARED = {
    "a loader behind it": GOES_OVER + TAIL.format(data=f"Pairs({LOADER})"),
    "another loader": TAIL.format(data=LOADER),
    "it is not handed over": MAKES + TAIL.format(data=LOADER).replace("Trainer(", "Pairs(4)\nTrainer("),
}


ONE_SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

{pairs}

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = {loader}


def fit(data):
    total = 0.0
    for x, y in data:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total)


fit(loader)
{second}
"""


def files(second):
    return {"trainer": TRAINER, "first": HEAD + TAIL.format(data=LOADER), "second": HEAD + second}


def refused(report):
    return [f.message for f in report.of(Kind.LEFT) if f.code == "MIG903"]


def test_what_is_shared_out_for_one_call_alone_is_refused(refused_text):
    source = ONE_SCRIPT.format(pairs=MAKES, loader=LOADER, second="fit(Pairs(4))")
    refused_text(source, "MIG903", "for x, y in data", ["a DataLoader, or over Pairs"])


def test_behind_a_bar_too(refused_text):
    source = ONE_SCRIPT.format(pairs=MAKES, loader=LOADER, second="fit(Pairs(4))")
    source = source.replace("    for x, y in data", "    bar = tqdm(data)\n    for x, y in bar")
    refused_text(f"from tqdm import tqdm\n{source}", "MIG903", "for x, y in bar", ["a DataLoader, or over Pairs"])


def test_two_scripts_of_which_one_has_no_loader_are_refused(converted):
    before = files(MAKES + TAIL.format(data="Pairs(4)"))
    report, after = converted(**before)
    assert report.of(Kind.LEFT)
    assert after == before


@pytest.mark.parametrize("second", SHARED.values(), ids=SHARED)
def test_loaders_are_not(second, converted):
    report, _ = converted(**files(second))
    assert not refused(report)


def test_a_loop_that_is_always_handed_loaders_trains_on_its_share(convert_text, numbers_printed):
    parts = {"pairs": "", "second": "fit(loader)"}
    source = ONE_SCRIPT.format(loader=LOADER, **parts)
    _, whole = convert_text(source)
    _, half = convert_text(ONE_SCRIPT.format(loader=LOADER.replace("batch_size=4", "batch_size=2"), **parts))
    assert numbers_printed(whole, 1) == numbers_printed(source, 1)
    sums, shares = numbers_printed(whole, 1), numbers_printed(half, 2)
    assert shares == pytest.approx([2 * each for each in sums], rel=1e-5)
