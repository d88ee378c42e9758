"""Lengths that an evaluation needs and that are taken elsewhere: `migrate/programs/evaluation/asked.py`."""

import pytest

from migrate.options import Target
from migrate.report.model import Kind

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(64, 2), torch.ones(64, 1)), batch_size=8, shuffle=True)
held = DataLoader(TensorDataset(torch.ones(22, 2), torch.ones(22, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
{taken}


def train():
    model.train()
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    {after_training}


def evaluate(rows{given}):
    model.eval()
    total = 0
    with torch.no_grad():
        for x, y in rows:
            output = model(x)
            total += nn.functional.mse_loss(output, y).item()
    print(total / {divisor})


for epoch in range(3):
    train()
    evaluate({evaluated})
"""


def source(taken, divisor="batches", evaluated="held", *, given="", after_training="pass"):
    return PROGRAM.format(taken=taken, divisor=divisor, evaluated=evaluated, given=given, after_training=after_training)


ASKED = {
    "in the file": (source("batches = len(held)"), "batches = accelerator.steps_per_evaluation(held)"),
    "handed over": (
        source("n = len(held)", evaluated="held, n", given=", batches"),
        "n = accelerator.steps_per_evaluation(held)",
    ),
    "computed with": (source("batches = float(len(held))"), "batches = float(accelerator.steps_per_evaluation(held))"),
    "of a loader that is trained on": (
        source("batches = len(loader)", evaluated="loader"),
        "batches = accelerator.steps_per_evaluation(loader)",
    ),
    "that one, computed with": (
        source("batches = 1.0 * len(loader)", evaluated="loader"),
        "batches = 1.0 * accelerator.steps_per_evaluation(loader)",
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_accelerator_is_asked_where_it_is_taken(convert_text, name):
    before, asked = ASKED[name]
    _, result = convert_text(before)

    assert asked in result
    assert result.count("steps_per_") == 1


def test_an_evaluation_asks_by_itself_for_what_a_training_takes_as_well(convert_text):
    before = source("batches = len(loader)", evaluated="loader", after_training="print(total / batches)")
    _, result = convert_text(before)

    assert "batches = accelerator.steps_per_epoch(loader)" in result
    assert "accelerator.print(total / batches)" in result
    assert "accelerator.print(total / accelerator.steps_per_evaluation(loader))" in result


def test_it_is_refused_where_the_evaluation_cannot_ask(convert_text):
    before = source("batches = 1.0 * len(loader)", evaluated="loader", after_training="print(total / batches)")
    report, result = convert_text(before)

    (told,) = [finding.message for finding in report.findings if finding.code == "MIG114"]
    assert "accelerator" not in result
    assert told.startswith("`batches` goes by len(loader) (line 9), that of a training on each process's share")


STAYING = {
    "nobody evaluates by it": source("batches = len(loader)", "6"),
    "how many samples there are": source("batches = len(held.dataset)"),
    "below the loop": source("batches = 6", "len(rows)"),
}


@pytest.mark.parametrize("name", STAYING)
def test_others_stay(convert_text, name):
    _, result = convert_text(STAYING[name])

    assert "gather_for_metrics" in result
    assert "steps_per_" not in result


def test_with_accelerate_a_length_is_always_that_of_a_share(convert_text):
    _, result = convert_text(source("batches = len(held)"), target=Target.ACCELERATE)

    assert "batches = len(held)" in result
    assert "gather_for_metrics" in result


ONE_FUNCTION = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(64, 2), torch.ones(64, 1)), batch_size=8, shuffle=True)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
batches = len(loader)
for epoch in range(3):
    model.train()
    running = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(running / {trained})
    model.eval()
    total = 0
    with torch.no_grad():
        for x, y in loader:
            output = model(x)
            total += nn.functional.mse_loss(output, y).item()
    print(total / batches)
"""


@pytest.mark.parametrize("trained", ["8", "batches"])
def test_above_both_loops_of_a_function(convert_text, trained):
    _, result = convert_text(ONE_FUNCTION.format(trained=trained))

    by_itself = "accelerator.print(total / accelerator.steps_per_evaluation(loader))"
    assert (by_itself in result) == (trained == "batches")
    assert ("batches = accelerator.steps_per_evaluation(loader)" in result) == (trained == "8")


OBJECT = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader, held):
        self.model, self.loader, self.held = model, loader, held
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)
        self.batches = len(self.loader)
        self.others = len(self.held)

    def train(self):
        self.model.train()
        total = 0
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        print(total / self.batches)

    def evaluate(self, rows, batches):
        self.model.eval()
        total = 0
        with torch.no_grad():
            for x, y in rows:
                output = self.model(x)
                total += nn.functional.mse_loss(output, y).item()
        print(total / batches)

    def run(self):
        for epoch in range(3):
            self.train()
            self.evaluate(self.held, self.others)


data = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
Trainer(nn.Linear(2, 1), DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=6)).run()
"""


def test_in_an_object(convert_text):
    _, result = convert_text(OBJECT)

    assert "self.batches = len(self.loader)" in result
    assert "self.others = self.accelerator.steps_per_evaluation(self.held)" in result


HANDED_ON = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Log:
    def log_every(self, iterable, every):
        i = 0
        for obj in iterable:
            yield obj
            if i % every == 0 or i == len(iterable) - 1:
                left = {left} * (len(iterable) - i)
                print(i, len(iterable), left)
            i += 1
        print(i / len(iterable))


def train(loader, model, optimizer, log):
    model.train()
    for x, y in log.log_every(loader, 3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


def evaluate(loader, model, log):
    model.eval()
    total = 0
    with torch.no_grad():
        for x, y in log.log_every(loader, 3):
            output = model(x)
            total += nn.functional.mse_loss(output, y).item()
    print(total / {divisor})


torch.manual_seed(0)
data = TensorDataset(torch.rand(64, 2), torch.rand(64, 1))
loader = DataLoader(data, batch_size=8)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
log = Log()
for epoch in range(2):
    train(loader, model, optimizer, log)
    evaluate(loader, model, log)
"""


def test_a_generator_takes_that_of_the_pass_it_makes(convert_text, numbers_printed):
    _, result = convert_text(HANDED_ON.format(left="2.0", divisor="len(loader)"))

    assert "steps_per_" not in result
    assert "left = 2.0 * (len(iterable) - i)" in result
    trained = [0, 4, 8.0, 3, 4, 2.0, 1.0]
    evaluated = [0, 8, 16.0, 3, 8, 10.0, 6, 8, 4.0, 7, 8, 2.0, 1.0]
    printed = numbers_printed(result, 2)
    assert printed[: len(trained) + len(evaluated)] == trained + evaluated


def test_what_a_generator_leaves_for_others_is_refused(convert_text):
    kept = "self.batches = 1.0 * len(iterable)\n        print(i / len(iterable))"
    before = HANDED_ON.format(left="2.0", divisor="log.batches").replace("print(i / len(iterable))", kept)
    before = before.replace("    evaluate(loader", "    print(log.batches)\n    evaluate(loader")
    before = before.replace("        optimizer.step()", "        optimizer.step()\n    print(log.batches)")
    report, result = convert_text(before)

    assert [finding.code for finding in report.of(Kind.LEFT)] == ["MIG114"]
    assert result.strip() == before.strip()
