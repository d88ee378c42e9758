"""A dictionary of settings of which a clock or chance gives one item: the others are the same on all processes."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import random
import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def load(name):
    config = {{"trainer": {{"epochs": 3}}, "stop": 2}}
    {made}
    return config


class Trainer:
    def __init__(self, config, model):
        self.config = config
        self.model = model
        self.loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 1)), batch_size=8, shuffle=True)
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    def train(self):
        for epoch in range(self.config["trainer"]["epochs"]):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = ((self.model(x) - y) ** 2).mean()
                loss.backward()
                self.optimizer.step()
            if epoch + 1 == self.config.get("stop", 5):
                break


torch.manual_seed(0)
config = load("runs")
{after}
trainer = Trainer(config, nn.Linear(4, 1))
trainer.train()
"""
OF_THEIR_OWN = {
    "an item": ('config["started"] = time.time()', ""),
    "where it is read": ("pass", 'config["started"] = time.time()'),
    "an update by a table": ('config.update({"started": time.time()})', ""),
    "an update by a keyword": ("config.update(started=time.time())", ""),
    "a default": ('config.setdefault("started", time.time())', ""),
    "an item of an item": ('config["run"] = {}\n    config["run"]["name"] = str(time.time())', ""),
    "in a table that takes another in": ('config = {**config, "started": time.time()}', ""),
    "in one that is made of it": ("config = dict(config, started=time.time())", ""),
    "in a copy": ("config = config.copy()\n    config['started'] = time.time()", ""),
}
DECIDING = {
    "the item that decides": ('config["stop"] = int(time.time()) % 3', ""),
    "where it is read": ("pass", 'config["stop"] = int(time.time()) % 3'),
    "a key that is not written out": ("config[name] = time.time()", ""),
    "an update by what is not written out": ("config.update(zip(['stop'], [time.time()]))", ""),
    "an update by a keyword": ("config.update(stop=time.time())", ""),
    "an item of an item": ('config["trainer"]["epochs"] = int(time.time()) % 3', ""),
    "in a table that takes another in": ('config = {**config, "stop": int(time.time()) % 3}', ""),
    "in one that is made of it": ("config = dict(config, stop=int(time.time()) % 3)", ""),
    "in what it is made of": ("config = dict({'stop': int(time.time()) % 3}, trainer=config['trainer'])", ""),
}


@pytest.mark.parametrize("name", OF_THEIR_OWN)
def test_other_items_do_not_decide(convert_text, name):
    made, after = OF_THEIR_OWN[name]
    report, result = convert_text(PROGRAM.format(made=made, after=after))

    assert not report.of(Kind.LEFT)
    assert "self.accelerator.backward(loss)" in result
    assert 'if epoch + 1 == self.config.get("stop", 5):' in result


@pytest.mark.parametrize("name", DECIDING)
def test_the_item_by_which_it_is_decided(convert_text, name):
    made, after = DECIDING[name]
    report, result = convert_text(PROGRAM.format(made=made, after=after))

    is_refused = "MIG122" in {finding.code for finding in report.of(Kind.LEFT)}
    assert is_refused or "gather_for_metrics([bool(epoch + 1 == self.config" in result


HANDED_OVER = """
import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def fit(seed=0, epochs=3, stop=2, run=None):
    torch.manual_seed(seed)
    loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 1)), batch_size=8, shuffle=True)
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
        if epoch + 1 == stop:
            break
    print(run, loss.item())


name = input()
{made}
fit({given})
"""
BY_THEIR_NAMES = {
    "a call": ("settings = dict(seed=1, epochs=3, run=time.time())", "**settings"),
    "a table": ('settings = {"seed": 1, "stop": 3, "run": time.time()}', "**settings"),
    "an item set later": ('settings = dict(epochs=3)\nsettings["run"] = time.time()', "**settings"),
    "of several": ("some, others = dict(epochs=3), dict(run=time.time())", "**some, **others"),
    "in place": ("", '**dict(epochs=3, run=time.time()), **{"stop": 4}'),
}
NOT_BY_THEIR_NAMES = {
    "the one that decides": ("settings = dict(seed=1, epochs=int(time.time()) % 3)", "**settings"),
    "a name that is not written out": ("settings = dict(epochs=3)\nsettings[name] = int(time.time())", "**settings"),
    "by position": ("settings = [1, 3, int(time.time())]", "*settings"),
}


@pytest.mark.parametrize("case", BY_THEIR_NAMES)
def test_what_a_call_hands_over_by_names_is_asked_for_by_them(convert_text, case):
    made, given = BY_THEIR_NAMES[case]
    report, _ = convert_text(HANDED_OVER.format(made=made, given=given))

    assert not report.of(Kind.LEFT)


@pytest.mark.parametrize("case", NOT_BY_THEIR_NAMES)
def test_one_of_these_that_a_clock_gives_is_refused(convert_text, case):
    made, given = NOT_BY_THEIR_NAMES[case]
    report, _ = convert_text(HANDED_OVER.format(made=made, given=given))

    assert "MIG122" in {found.code for found in report.of(Kind.LEFT)}
