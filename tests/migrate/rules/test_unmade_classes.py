"""Classes of which nothing makes an object, beside those that run, and one object of one of several classes."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Engine:
    def __init__(self, rate):
        self.opt = torch.optim.SGD(self.model.parameters(), lr=rate)

    def train(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.opt.step()
            print(loss.item())


class Shallow(Engine):
    def __init__(self, rate):
        self.model = nn.Linear(4, 1)
        super().__init__(rate)


class Deep(Engine):
    def __init__(self, rate):
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        super().__init__(rate)
{more}

def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), batch_size=8)
    {made}
    engine.train(loader)


main()
"""
CALLING = """
    def run(self, loader):
        print("deep")
        self.train(loader)
"""
ALONE = """

def fit(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


class Solver:
    def __init__(self, data):
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.loader = DataLoader(data, batch_size=8)

    def solve(self):
        fit(self.model, self.optimizer, self.loader)


def main():
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=8)
    fit(net, optimizer, loader)
    {more}


main()
"""
HEADER = "import sys\nimport torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n"


def program(made, more=""):
    return PROGRAM.format(made=made, more=more).lstrip("\n")


def unmade(report):
    return [f.message for f in report.of(Kind.NOTE) if "nothing that was read makes a" in f.message]


def test_a_class_that_nothing_makes_is_no_reason_to_leave_the_others(convert_text):
    _, result = convert_text(program("engine = Shallow(0.1)\n    # engine = Deep(0.1)"))

    assert "engine.model, engine.opt = accelerator.prepare(" in result
    assert "accelerator.backward(loss)" in result


def test_what_it_needs_is_handed_to_it_and_told(convert_text):
    report, result = convert_text(program("engine = Shallow(0.1)", CALLING))

    deep = result[result.index("class Deep") : result.index("def main")]
    assert "def run(self, loader, accelerator):" in deep
    assert "self.train(loader, accelerator)" in deep
    assert unmade(report) == [
        "nothing that was read makes a Deep: it is handed the accelerator, and stays as it is otherwise"
    ]


def test_its_loaders_are_none_of_the_program(convert_text):
    report, result = convert_text(HEADER + ALONE.format(more="print(net)"))

    assert "def solve(self, accelerator):" in result
    assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in result
    assert unmade(report)


@pytest.mark.parametrize(
    "more",
    [
        "Solver(data).solve()",
        "solvers = {'one': Solver}\n    solvers[sys.argv[1]](data).solve()",
        "globals()[sys.argv[1]](data).solve()\n    print('Solver')",
    ],
    ids=["made", "handed on", "named by a text"],
)
def test_a_class_that_may_be_made_is_one_of_the_program(refused_text, more):
    finding = refused_text(HEADER + ALONE.format(more=more), "MIG901", "for x, y in loader:")

    assert "no place names the model, the optimizer" in finding.message


def test_an_object_of_one_of_several_classes_is_one_object(numbers_printed):
    source = program('engine = {"shallow": Shallow, "deep": Deep}[sys.argv[1:] and sys.argv[1] or "deep"](0.1)')

    alone = numbers_printed(source, 1)
    assert alone == numbers_printed(source, 2)[: len(alone)]


def test_two_objects_of_two_classes_are_two(refused_text):
    source = program("engine = Shallow(0.1)\n    other = Deep(0.1)\n    other.train(loader)")
    refused_text(source, "MIG901", "for x, y in loader:")
