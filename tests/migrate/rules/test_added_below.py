"""Numbers that functions add up which a training loop calls: attributes of its own object, names of its module."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
"""
TRAINER = """
class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    def reset(self):
        self.total, self.steps = 0.0, 0

    def fit(self):
        for epoch in range(2):
            self.reset()
            for x, y in self.loader:
                self.step(x, y)
            print(self.total / DIVISOR)

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.log(loss.item())

    def log(self, number):
        self.total += number
        self.steps += 1

Trainer(nn.Linear(2, 1), loader).fit()
"""
GLOBAL = """
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)

def step(x, y):
    global total
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item() * len(x)

for epoch in range(2):
    total = 0.0
    for x, y in loader:
        step(x, y)
    print(total / len(data))
"""
IN_A_FUNCTION = GLOBAL.replace(
    GLOBAL[GLOBAL.index("for epoch") :],
    """
def fit():
    global total
    for epoch in range(2):
        total = 0.0
        for x, y in loader:
            step(x, y)
        print(total / len(data))

fit()
""",
)
SUM = "{0} = sum({1}.gather_for_metrics([{0}]))\n"
MEAN = "{0} = sum({1}.gather_for_metrics([{0}])) / {1}.num_processes\n"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (TRAINER.replace("DIVISOR", "self.steps"), MEAN.format("self.total", "self.accelerator")),
        (TRAINER.replace("DIVISOR", "len(self.loader)"), MEAN.format("self.total", "self.accelerator")),
        (
            TRAINER.replace("DIVISOR", "len(data)").replace("(loss.item())", "(loss.item() * len(x))"),
            SUM.format("self.total", "self.accelerator"),
        ),
        (GLOBAL, SUM.format("total", "accelerator")),
        (IN_A_FUNCTION, SUM.format("total", "accelerator")),
    ],
)
def test_the_shares_are_joined_after_the_loop(convert_text, source, line):
    _, new = convert_text(HEAD + source)

    assert line in new


@pytest.mark.parametrize(
    "reset",
    [
        TRAINER.replace("        self.total += number", "        self.total = number"),
        TRAINER.replace("        self.log(loss.item())", "        self.reset()\n        self.log(loss.item())"),
        TRAINER.replace("            self.reset()\n", ""),
        TRAINER.replace("self.log(loss.item())", "Trainer.log(other, loss.item())").replace(
            "Trainer(nn.Linear(2, 1), loader).fit()",
            "other = Trainer(nn.Linear(2, 1), loader)\nother.reset()\nTrainer(nn.Linear(2, 1), loader).fit()",
        ),
    ],
)
def test_what_does_not_grow_from_nothing_over_one_pass_is_not_joined(convert_text, reset):
    report, new = convert_text(HEAD + reset.replace("DIVISOR", "2"))

    assert "gather_for_metrics" not in new
    assert report.changes or report.findings
