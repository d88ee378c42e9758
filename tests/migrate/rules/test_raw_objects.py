"""Programs in which an object that is not prepared would be taken for one that is: refused, with the reason."""

import textwrap

import pytest

from migrate.options import Options
from migrate.pipeline import run_text
from migrate.report.model import Kind

PROGRAM = """\
import copy
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
class Holder:
    def __init__(self, held):
        self.held = held
def train(model, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
{make}
model = nn.Linear(4, 2).to(device)
{early}
optimizer = optim.SGD({trained}, lr=0.1)
for epoch in range(2):
    {epoch}
"""
FILLINGS = {
    "make": "loader = DataLoader(make_set(64), batch_size=16)",
    "early": "",
    "trained": "model.parameters()",
    "epoch": "train(model, loader, optimizer)",
}


def _report(**holes):
    text = PROGRAM
    for hole, filling in {**FILLINGS, **holes}.items():
        indent = "    " if hole == "epoch" else ""
        text = text.replace("{" + hole + "}", textwrap.indent(filling, indent).lstrip())
    return run_text(text.encode(), "program.py", Options())


FACTORY = """\
def make(n):
    for _ in range(1):
        loader = DataLoader(make_set(n), batch_size=16)
    return loader
"""
TASK = """\
class Task(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner(x)
"""
TURNS = """\
class Turns:
    def __init__(self, loader):
        self.batches = self.forever(loader)
    def __iter__(self):
        return self
    def __next__(self):
        return next(self.batches)
    def forever(self, loader):
        while True:
            for batch in loader:
                yield batch
"""
REFUSED = {
    "a factory with a loop, called twice": ("MIG104", {"make": FACTORY + "loader = make(64)\ntest_loader = make(33)"}),
    "a property": (
        "MIG104",
        {
            "make": "class Data:\n    @property\n    def loader(self):\n        return DataLoader(make_set(1))\n"
            "loader = Data().loader\ntest_loader = Data().loader"
        },
    ),
    "two objects of a class": (
        "MIG104",
        {
            "make": "class Data:\n    def __init__(self, n):\n        self.loader = DataLoader(make_set(n))\n"
            "loader = Data(1).loader\ntest_loader = Data(2).loader"
        },
    ),
    "a function that map() calls": ("MIG104", {"make": "loader, other = map(lambda s: DataLoader(s), sets)"}),
    "a parameter of no model": (
        "MIG902",
        {"early": "scale = torch.zeros(2, requires_grad=True)", "trained": "[*model.parameters(), scale]"},
    ),
    "training and evaluating by turns": (
        "MIG114",
        {
            "epoch": "for phase in ['train', 'val']:\n"
            "    for x, y in loader:\n"
            "        loss = model(x.to(device)).sum()\n"
            "        if phase == 'train':\n"
            "            loss.backward()\n"
            "            optimizer.step()"
        },
    ),
    "a comprehension over the training data": (
        "MIG114",
        {"epoch": "train(model, loader, optimizer)\nseen = sum(len(y) for x, y in loader)"},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    code, holes = REFUSED[name]
    report = _report(**holes)
    assert not report.changes
    assert code in {finding.code for finding in report.of(Kind.LEFT)}


KEPT = {
    "an attribute": ("box = Holder(loader)", "train(model, box.held, optimizer)\ntrain(model, loader, optimizer)"),
    "a dictionary": ("box = {'a': loader}", "train(model, box['a'], optimizer)"),
    "another name": ("other = loader", "train(model, other, optimizer)"),
    "a default": ("def run(it=loader):\n    train(model, it, optimizer)", "run()\ntrain(model, loader, optimizer)"),
    "an iterator": ("rows = iter(loader)", "train(model, rows, optimizer)"),
    "an object that is run over": (TURNS + "rows = Turns(loader)", "train(model, rows, optimizer)"),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_loader_is_prepared_above_what_keeps_it(name):
    early, epoch = KEPT[name]
    (change,) = _report(early=early, epoch=epoch).changes
    result = change.new.decode()

    assert result.index("loader = accelerator.prepare(loader)") < result.index(early.splitlines()[-1])
    assert "\nmodel, optimizer = accelerator.prepare(model, optimizer)" in result


STEPS = (
    TURNS
    + """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
turns = Turns(loader)
model = nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(9):
    (x,) = next(turns)
    loss = model(x.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)


def test_a_loader_is_prepared_above_an_object_that_is_asked_for_the_next_batch(convert_text):
    _, result = convert_text(STEPS)

    assert result.index("\nloader = accelerator.prepare(loader)") < result.index("\nturns = Turns(loader)")
    assert "loss = model(x).mean()" in result


def test_a_model_around_the_trained_one_is_prepared():
    report = _report(early=TASK + "task = Task(model)", epoch="train(task, loader, optimizer)\nmodel.eval()")
    (change,) = report.changes

    assert b"loader, task, optimizer = accelerator.prepare(loader, task, optimizer)" in change.new


MOVED = {
    "a copy": "ema = copy.deepcopy(model)",
    "copies of its parameters": "start = [p.detach().clone() for p in model.parameters()]",
    "a call": "width = model(torch.ones(1, 4).to(device)).shape[1]",
    "a call in a function": "def width(net):\n    return net(torch.ones(1, 4).to(device)).shape\nprint(width(model))",
}


@pytest.mark.parametrize("name", MOVED)
def test_a_model_that_is_needed_on_its_device_before_prepare_stays_moved(name):
    (change,) = _report(early=MOVED[name]).changes
    assert "model = nn.Linear(4, 2).to(device)" in change.new.decode()


LOOP_BESIDE = """\
def make(n):
    sets = []
    for i in range(n):
        sets.append(make_set(i))
    return DataLoader(sets, batch_size=16)
def other():
    return make(33)
"""
ALLOWED = {
    "a factory whose other call is not made here": {"make": LOOP_BESIDE + "loader = make(64)"},
    "a dictionary that is made afterwards": {"epoch": "box = {'a': loader}\ntrain(model, box['a'], optimizer)"},
    "its length, and its data": {
        "early": "count, data = len(loader), loader.dataset",
        "epoch": "train(model, loader, optimizer)\nprint(count, data)",
    },
}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name):
    assert _report(**ALLOWED[name]).changes


def test_what_a_loop_makes_before_prepare_is_several():
    assert not _report(make="loader = None\nfor n in range(1):\n    loader = DataLoader(make_set(n))").changes


def test_a_name_that_is_given_something_else_after_prepare(changed):
    """The first batch is looked at, and later one of another loader under the same names."""
    look = "rows = iter({})\nx, y = next(rows)"
    other = "other = DataLoader(data, batch_size=2)\n"
    changed(made=look.format("loader"), end=other + look.format("other"))


def test_a_name_that_is_given_something_else_under_a_condition(changed):
    changed(
        model=("model = nn.Linear(2, 1)", "loader = accelerator.prepare(loader)\nmodel = nn.Linear(2, 1)"),
        made="rows = iter(loader)",
        prepare="model, optimizer = accelerator.prepare(model, optimizer)",
        end="if len(data) > 3:\n    rows = iter([1])\nx = next(rows)",
    )


FACTORY = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader


def make(width, fixed):
    net = nn.Linear(width, 1)
    if fixed:
        for p in net.parameters():
            p.requires_grad = False
    return net


loader = DataLoader(data)
model = make(2, False)
teacher = make(2, True)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    (model(x) - teacher(x)).sum().backward()
    optimizer.step()
"""


def test_a_function_that_goes_over_the_parameters_makes_a_model_for_each_call(convert_text):
    _, result = convert_text(FACTORY)

    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in result


SOLVER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, loader):
        self.loader = loader
        {above}
        {build}
        {below}

    def build_model(self):
        self.net = nn.Linear(2, 1)
        self.opt = optim.SGD(self.net.parameters(), lr=0.1)

    def show(self):
        print(len(self.loader))

    def train(self):
        for (x,) in {over}:
            loss = self.net(x).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


loader = DataLoader(TensorDataset(torch.zeros(8, 2)), batch_size=2)
{before}
solver = Solver(loader)
{after}
solver.train()
{end}
"""
SET_UP = {"above": "", "build": "self.build_model()", "below": "", "over": "self.loader"}
SET_UP |= {"before": "", "after": "", "end": ""}
SETS_UP = {
    "nothing else": {},
    "looked at before": {"before": "print(len(loader.dataset))"},
    "counted above": {"above": "self.steps = len(loader)"},
    "shown afterwards": {"below": "self.show()"},
    "shown above": {"above": "self.show()"},
    "counted below": {"below": "self.steps = len(loader)"},
    "read through the object": {"end": "for (x,) in solver.loader:\n    print(solver.net(x))"},
}


@pytest.mark.parametrize("name", SETS_UP)
def test_what_an_init_sets_up_in_a_method(convert_text, name):
    _, result = convert_text(SOLVER.format(**(SET_UP | SETS_UP[name])))

    assert "self.loader, self.net, self.opt = self.accelerator.prepare(" in result
    assert result.index("self.accelerator = Accelerator(") < result.index("self.build_model()")
    assert "self.accelerator.backward(loss)" in result


RAW_ELSEWHERE = {
    "read by the script": {"end": "for (x,) in loader:\n    print(solver.net(x))"},
    "set up at times": {"build": "if loader:\n            self.build_model()"},
    "taken above": {"above": "self.batches = list(loader)", "over": "self.batches"},
    "given by a lambda": {"above": "self.get = lambda: loader", "over": "self.get()"},
    "a global": {"over": "loader"},
    "another one later": {"after": "solver.loader = DataLoader(TensorDataset(torch.zeros(8, 2)), batch_size=4)"},
    "set up again": {"end": "solver.build_model()\nsolver.train()"},
}


@pytest.mark.parametrize("name", RAW_ELSEWHERE)
def test_what_an_init_sets_up_and_others_have_raw(convert_text, name):
    report, result = convert_text(SOLVER.format(**(SET_UP | RAW_ELSEWHERE[name])))

    assert "Accelerator" not in result
    assert any(finding.code == "MIG104" for finding in report.findings)


ITERATED = {"above": "self.batches = iter(loader)", "over": "self.batches"}
AGAIN = {"above": "self.again = self.loader", "over": "self.again"}


def test_a_loader_is_prepared_above_its_second_name(convert_text):
    _, result = convert_text(SOLVER.format(**(SET_UP | AGAIN)))

    assert "        self.loader = self.accelerator.prepare(self.loader)\n\n        self.again = self.loader\n" in result
    assert "        self.net, self.opt = self.accelerator.prepare(self.net, self.opt)\n" in result


def test_a_loader_is_prepared_above_the_object_that_keeps_it(convert_text):
    _, result = convert_text(SOLVER.format(**(SET_UP | ITERATED)))

    assert result.index("\nloader = accelerator.prepare(loader)") < result.index("\nsolver = Solver(loader)")
    assert "solver.net, solver.opt = accelerator.prepare(solver.net, solver.opt)" in result


IN_PLACE = "self.net = nn.Linear(2, 1)\n        self.opt = optim.SGD(self.net.parameters(), lr=0.1)"
BY_OTHERS = {
    "by the script": {"end": "for (x,) in loader:\n    print(solver.net(x))"},
    "by a function": {"end": "def show():\n    for i, (x,) in enumerate(loader):\n        print(i, x)\n\n\nshow()"},
    "by its own method": {"over": "loader"},
    "by what is kept": {"above": "self.again = lambda: loader", "over": "self.again()"},
}


@pytest.mark.parametrize("name", BY_OTHERS)
def test_a_loader_that_others_go_over_is_prepared_above_the_object_that_is_handed_it(convert_text, name):
    text = SOLVER.format(**(SET_UP | {"build": IN_PLACE} | BY_OTHERS[name]))
    without = text[text.index("    def build_model") : text.index("    def show")]
    _, result = convert_text(text.replace(without, ""))

    prepared = next(n for n, line in enumerate(result.splitlines()) if line.startswith("loader") and "prepare(" in line)
    made = result.splitlines().index("solver = Solver(loader)")
    assert prepared < made or "loader, solver.net, solver.opt = accelerator.prepare(" in result
    assert "self.loader = self.accelerator.prepare" not in result
    assert "self.loader, self.net" not in result


ENDLESS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Endless:
    def __init__(self, data):
        self.loader = DataLoader(data, batch_size=4)
        self.batches = iter(self.loader)

    def next(self):
        try:
            return next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)
            return next(self.batches)

data = TensorDataset(torch.ones(8, 2))
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
endless = Endless(data)
for step in range(9):
    (x,) = endless.next()
    loss = model(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_loader_is_prepared_before_an_iterator_over_it_is_kept(convert_text):
    _, result = convert_text(ENDLESS)
    prepared = result.index("self.loader = accelerator.prepare(self.loader")
    assert result.index("DataLoader(data, batch_size=4)") < prepared < result.index("self.batches = iter(self.loader)")
    assert "endless.loader" not in result


GIVEN_BACK = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

def loaders():
    train = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
    test = DataLoader(TensorDataset(torch.zeros(8, 2)), batch_size=4)
    return train, test

class Trainer:
    def __init__(self, lr):
        self.lr = lr
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def train(self, net):
        net = net.to(self.device)
        loader, _ = loaders()
        optimizer = optim.SGD(net.parameters(), lr=self.lr)
        for (x,) in loader:
            optimizer.zero_grad()
            net(x.to(self.device)).mean().backward()
            optimizer.step()
        return net

class Search:
    def pretrain(self):
        self.net = nn.Linear(2, 1)
        self.net = Trainer(0.1).train(self.net)
        return {key: value for key, value in self.net.state_dict().items() if key == "weight"}

Search().pretrain()
"""


def test_code_without_the_accelerator_is_given_the_model_itself(convert_text):
    _, result = convert_text(GIVEN_BACK)
    assert "        return self.accelerator.unwrap_model(net)\n" in result


def test_a_loader_that_nobody_reads_stays(convert_text):
    _, result = convert_text(GIVEN_BACK)
    assert "loader, net, optimizer = self.accelerator.prepare(loader, net, optimizer)" in result


BY_DEFAULT = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets


def make_data():
    return datasets.MNIST("data", download=True)


def make_loader():
    return DataLoader(make_data(), batch_size=16)


def train(epochs=2, device="cuda", {parameter}):
    model = nn.Linear(4, 2).to(device)
    {make}
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    train({given})
"""


@pytest.mark.parametrize("given", ["", "loader=make_loader()"])
def test_a_loader_that_is_made_with_a_definition_is_refused(given):
    text = BY_DEFAULT.format(parameter="loader=make_loader()", make="pass", given=given)
    report = run_text(text.encode(), "program.py", Options())
    (left,) = [f for f in report.findings if f.kind is Kind.LEFT]
    assert (left.code, left.line) == ("MIG104", 15)
    assert "make_loader() is read here" in left.message


def test_what_runs_with_a_definition_does_not_ask_the_accelerator_that_is_made_below():
    text = BY_DEFAULT.format(parameter="data=make_data()", make="loader = DataLoader(data, batch_size=16)", given="")
    report = run_text(text.encode(), "program.py", Options())
    (change,) = report.changes
    assert 'def make_data():\n    return datasets.MNIST("data", download=True)' in change.new.decode()
    assert any("every process downloads this at the same time" in f.message for f in report.findings)
