"""Classes that add numbers up."""

import pytest

from migrate.programs.shares.meters import meter_of

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
losses.update(3, 2)
"""


@pytest.fixture
def meter(analysed):
    """What the only class of a source, or the one of a name, is as a meter."""

    def find(source, name=""):
        facts, _ = analysed(source)
        owners = {unit.owner for unit in facts.functions if unit.owner is not None}
        (cls,) = {owner for owner in owners if name in ("", owner.node.name)}
        return meter_of(cls)

    return find


RESET = """        self.last = 0
        self.mean = 0
        self.total = 0
        self.count = 0
"""


@pytest.mark.parametrize(
    "reset",
    [
        RESET,
        "        self.last, self.mean = 0, 0\n        self.total = self.count = 0\n",
        "        self.last, (self.mean, self.total), self.count = 0, [0, 0], 0\n",
        "        self.last, self.mean, self.total, self.count = (0,) * 4\n",
        RESET.replace("self.total =", "self.total: float ="),
    ],
)
def test_an_average(meter, reset):
    average = meter(AVERAGE.replace(RESET, reset) + USE)

    assert average.sums == {"total", "count"}
    assert average.derived == {"last", "mean"}
    assert (average.feeds, average.resets) == ({"update"}, {"reset"})


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


def test_a_list_of_values(meter):
    history = meter(LISTED)

    assert (history.sums, history.feeds, history.derived) == ({"values"}, {"add"}, set())


MATRIX = """
import numpy as np
class Matrix:
    def __init__(self, n):
        self.n = n
        self.matrix = np.zeros((n, n))
    def update(self, preds, targets):
        {update}
    def reset(self):
        self.matrix = np.zeros((self.n, self.n))
matrix = Matrix(2)
matrix.update(a, b)
"""
UPDATES = {
    "by names": "label = targets * self.n\n        index = label + preds\n        self.matrix += np.bincount(index)",
    "by rows": "for t, p in zip(targets, preds):\n            self.matrix += np.bincount(self.n * t + p)",
}


@pytest.mark.parametrize("name", UPDATES)
def test_a_matrix_that_what_is_given_is_counted_in(meter, name):
    matrix = meter(MATRIX.format(update=UPDATES[name]))

    assert (matrix.sums, matrix.feeds, matrix.resets) == ({"matrix"}, {"update"}, {"reset"})


FILLED = {"an array": "self.matrix.fill(0)", "a tensor": "self.matrix.zero_()"}


@pytest.mark.parametrize("name", FILLED)
def test_one_that_is_emptied_where_it_stands(meter, name):
    source = MATRIX.format(update=UPDATES["by names"])
    source = source.replace("self.matrix = np.zeros((self.n, self.n))", FILLED[name])
    matrix = meter(source)

    assert (matrix.sums, matrix.feeds, matrix.resets) == ({"matrix"}, {"update"}, {"reset"})


def test_one_that_says_what_its_base_only_names(meter):
    base = (
        "class Metric:\n    def reset(self):\n        pass\n    def update(self, *given):\n        raise ValueError\n"
    )
    source = MATRIX.format(update=UPDATES["by names"]).replace("class Matrix:", base + "class Matrix(Metric):")

    assert meter(source, "Matrix").feeds == {"update"}
    assert meter(source.replace("        pass", "        self.n = 0"), "Matrix") is None


HANDING_ON = """
class Overlap:
    def __init__(self, n):
        self.counts = Matrix(n)
    def {name}(self, preds, targets):
        self.counts.update(preds.view(-1), targets.view(-1))
    def reset(self):
        {reset}
    def value(self):
        matrix = self.counts.matrix
        matrix[:, 0] = 0
        return matrix.diag().sum() / matrix.sum()
overlap = Overlap(2)
overlap.{name}(a, b)
"""


@pytest.mark.parametrize("name", ["update", "add", "__call__"])
def test_one_that_hands_on_what_it_is_given(meter, name):
    source = MATRIX.format(update=UPDATES["by names"])
    overlap = meter(source + HANDING_ON.format(name=name, reset="self.counts.reset()"), "Overlap")

    assert (overlap.feeds, overlap.resets) == ({name}, {"reset"})
    way, matrix = overlap.innermost()
    assert (way, matrix.cls.node.name, matrix.sums) == (".counts", "Matrix", {"matrix"})


@pytest.mark.parametrize("reset", ["self.counts.reset()\n        self.steps = 0", "self.counts = None"])
def test_one_that_keeps_something_else_as_well_is_none(meter, reset):
    source = MATRIX.format(update=UPDATES["by names"])

    assert meter(source + HANDING_ON.format(name="add", reset=reset), "Overlap") is None


OTHERS = {
    "one that begins above zero": MATRIX.format(update=UPDATES["by names"]).replace("np.zeros", "np.ones"),
    "one that counts from one": AVERAGE.replace("self.count = 0", "self.count = 1") + USE,
    "one that is filled with something": MATRIX.format(update=UPDATES["by names"]).replace(
        "self.matrix = np.zeros((self.n, self.n))\nmatrix", "self.matrix.fill(1)\n        self.matrix[0] = 1\nmatrix"
    ),
    "a counter of its own": "class A:\n    def step(self, x):\n        self.n += 1\nA().step(3)",
    "something that trains": (
        "class A:\n    def step(self, x):\n        for y in x:\n            self.total += y\nA().step(loader)"
    ),
    "a model": "import torch\nclass A(torch.nn.Module):\n    def add(self, x):\n        self.n += x\nA().add(3)",
    "one that changes others": "class A:\n    def add(self, x):\n        self.n += x\n        x.y = 3\nA().add(3)",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_classes_are_no_meters(meter, name):
    assert meter(OTHERS[name]) is None
