"""Classes that add numbers up, and where their objects are fed, reset and read."""

import ast

import pytest

from migrate.programs.shares.meters import Meters

AVERAGE = """
class Average:
    def __init__(self, name):
        self.name = name
        self.reset()
    def reset(self):
        self.last = 0
        self.mean = 0
        self.total = 0
        self.count = 0
    def update(self, value, n=1):
        self.last = value
        self.total += value * n
        self.count += n
        self.mean = self.total / self.count
    def __str__(self):
        return f"{self.name} {self.mean}"
"""

USE = """
losses = Average("loss")
for x in data:
    losses.reset()
    losses.update(x, 2)
    print(losses.mean)
print(losses.total)
"""


def test_an_average(analysed):
    facts, _ = analysed(AVERAGE + USE)
    meters = Meters(facts)
    (meter,) = meters.classes.values()
    (use,) = meters.uses

    assert meter.sums == {"total", "count"}
    assert meter.derived == {"last", "mean"}
    assert (meter.feeds, meter.resets, meter.is_mean) == ({"update"}, {"reset"}, True)
    assert [ast.unparse(call) for call in use.fed] == ["losses.update(x, 2)"]
    assert [ast.unparse(call) for call in use.reset] == ["losses.reset()"]
    assert [ast.unparse(node) for node in use.read] == ["losses.mean", "losses.total"]


LISTED = """
class History:
    def __init__(self):
        self.values = []
    def add(self, value):
        self.values.append(value)
    def mean(self):
        return sum(self.values) / len(self.values)
history = History()
history.add(3)
"""


def test_a_list_of_values(analysed):
    facts, _ = analysed(LISTED)
    (meter,) = Meters(facts).classes.values()

    assert (meter.sums, meter.feeds, meter.reads) == ({"values"}, {"add"}, {"mean"})


OTHERS = {
    "a counter of its own": "class A:\n    def step(self, x):\n        self.n += 1\nA().step(3)",
    "something that trains": (
        "class A:\n    def step(self, x):\n        for y in x:\n            self.total += y\nA().step(loader)"
    ),
    "a model": "import torch\nclass A(torch.nn.Module):\n    def add(self, x):\n        self.n += x\nA().add(3)",
    "one that changes others": "class A:\n    def add(self, x):\n        self.n += x\n        x.y = 3\nA().add(3)",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_classes_are_no_meters(analysed, name):
    facts, _ = analysed(OTHERS[name])

    assert not Meters(facts).classes
