"""Numbers that functions add up which a training loop calls: attributes of its own object, names of its module."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
"""
METER = """
class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count
"""
TRAINER = (
    METER
    + """
class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)
        self.meter = Meter()
        self.total, self.steps = 0.0, 0

    def reset(self):
        self.total, self.steps = 0.0, 0

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.log(loss.item())

    def log(self, number):
        self.total += number
        self.steps += 1
"""
)
FIT = """
    def fit(self):
        for epoch in range(2):
            self.reset()
            for x, y in self.loader:
                self.step(x, y)
            print(self.total / DIVISOR)
"""
BY_CALLER = """
    def fit(self):
        for epoch in range(2):
            self.total = 0.0
            self.train()
            print(self.total / DIVISOR)

    def train(self):
        for x, y in self.loader:
            self.step(x, y)
"""
AFTER_CALL = """
    def fit(self):
        for epoch in range(2):
            self.train()
            self.end()

    def train(self):
        for x, y in self.loader:
            self.step(x, y)

    def end(self):
        print(self.total / DIVISOR)
        self.total = 0.0
"""
WITH_METER = """
    def log(self, number):
        self.meter.update(number)

    def fit(self):
        for epoch in range(2):
            self.meter.reset()
            for x, y in self.loader:
                self.step(x, y)
            print(self.meter.avg)
"""
RUN = "\nTrainer(nn.Linear(2, 1), loader).fit()\n"
SCRIPT = """
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)

def learn(x, y):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
"""
GLOBAL = """
def step(x, y):
    global total
    total += learn(x, y) * len(x)

for epoch in range(2):
    total = 0.0
    for x, y in loader:
        step(x, y)
    print(total / len(data))
"""
GLOBAL_OF_BOTH = """
def step(x, y):
    global total
    total += learn(x, y) * len(x)

def fit():
    global total
    for epoch in range(2):
        total = 0.0
        for x, y in loader:
            step(x, y)
        print(total / len(data))

fit()
"""
AROUND_BOTH = """
def fit():
    total = 0.0

    def step(x, y):
        nonlocal total
        total += learn(x, y) * len(x)

    for epoch in range(2):
        total = 0.0
        for x, y in loader:
            step(x, y)
        print(total / len(data))

fit()
"""
HANDED = """
def step(x, y, losses):
    losses.update(learn(x, y), len(x))

for epoch in range(2):
    losses = Meter()
    for x, y in loader:
        step(x, y, losses)
    print(losses.avg)
"""
SUM = "{0} = sum({1}.gather_for_metrics([{0}]))\n"
MEAN = "{0} = sum({1}.gather_for_metrics([{0}])) / {1}.num_processes\n"
OF_TRAINER, OF_SCRIPT = ("self.total", "self.accelerator"), ("total", "accelerator")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (TRAINER + FIT.replace("DIVISOR", "self.steps") + RUN, MEAN.format(*OF_TRAINER)),
        (TRAINER + FIT.replace("DIVISOR", "len(self.loader)") + RUN, MEAN.format(*OF_TRAINER)),
        (
            TRAINER.replace("(loss.item())", "(loss.item() * len(x))") + FIT.replace("DIVISOR", "len(data)") + RUN,
            SUM.format(*OF_TRAINER),
        ),
        (TRAINER + BY_CALLER.replace("DIVISOR", "len(self.loader)") + RUN, MEAN.format(*OF_TRAINER)),
        (TRAINER + AFTER_CALL.replace("DIVISOR", "len(self.loader)") + RUN, MEAN.format(*OF_TRAINER)),
        (TRAINER + WITH_METER + RUN, "self.meter.avg = self.meter.sum / self.meter.count\n"),
        (SCRIPT + GLOBAL, SUM.format(*OF_SCRIPT)),
        (SCRIPT + GLOBAL_OF_BOTH, SUM.format(*OF_SCRIPT)),
        (SCRIPT + AROUND_BOTH, SUM.format(*OF_SCRIPT)),
        (METER + SCRIPT + HANDED, "losses.avg = losses.sum / losses.count\n"),
    ],
)
def test_the_shares_are_joined_after_the_loop(convert_text, source, line):
    _, new = convert_text(HEAD + source)

    assert line in new


@pytest.mark.parametrize(
    "source",
    [
        TRAINER.replace("        self.total += number", "        self.total = number") + FIT,
        TRAINER.replace("        self.log(", "        self.reset()\n        self.log(") + FIT,
        TRAINER + FIT.replace("            self.reset()\n", ""),
        TRAINER
        + BY_CALLER.replace("            self.train()\n", "            self.train()\n            self.train()\n"),
        TRAINER + AFTER_CALL.replace("        self.total = 0.0\n", ""),
        TRAINER + BY_CALLER + "\n    def more(self):\n        self.total += 1\n",
    ],
)
def test_what_does_not_grow_from_nothing_over_one_pass_is_not_joined(convert_text, source):
    report, new = convert_text(HEAD + source.replace("DIVISOR", "2") + RUN)

    assert "self.total = sum(" not in new
    assert report.changes


def test_of_another_object_it_is_nothing_of_the_loop_s_own(convert_text):
    other = "\nother = Trainer(nn.Linear(2, 1), loader)\nother.reset()\n"
    source = TRAINER.replace("self.log(loss.item())", "other.log(loss.item())") + FIT.replace("DIVISOR", "2")
    _, new = convert_text(HEAD + source + other + RUN)

    assert "self.total = sum(" not in new


def test_a_meter_that_is_reset_where_it_is_fed_stays_one_process_s_own(convert_text):
    source = HANDED.replace("    losses.update", "    losses.reset()\n    losses.update")
    report, new = convert_text(HEAD + METER + SCRIPT + source)

    assert "losses.avg = " not in new
    assert any("losses, read after this loop" in finding.message for finding in report.findings)
