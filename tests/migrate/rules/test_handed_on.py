"""One process's own values are followed to where they decide, however they are handed on."""

import pytest

PROGRAM = """
import heapq
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(16, 2), torch.ones(16, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer)
last = 0.0
def train():
    global last
    worst = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        worst = (y > 1).sum().item()
        last = (x > 1).sum().item()
    {give} {given}
def set_rate(rate):
    for group in optimizer.param_groups:
        group["lr"] = rate
def adjust():
    schedule.step(last)
def told(log):
    schedule.step(log["w"])
def shown(value):
    if value > 1:
        return "big"
    return str(value)
class Judge:
    def __init__(self):
        self.values = []
    def add(self, value):
        self.values.append(value)
    @property
    def stop(self):
        return len(self.values) > 2 and self.values[-1] > self.values[-2]
    def is_over(self, value):
        self.add(value)
        return value > min(self.values)
judge = Judge()
{use}
"""
OF_ALL = {"give": "return", "given": "worst"}
ITEM = {"give": "return", "given": '{"w": worst}'}

DECIDED = {
    "a counter that waits": (
        OF_ALL,
        (
            "best, bad = 9.0, 0\nfor epoch in range(9):\n    w = train()\n    if w < best:\n        best, bad = w, 0\n"
            "    else:\n        bad += 1\n    if bad > 2:\n        break"
        ),
        "if bad",
    ),
    "the next round": (
        OF_ALL,
        "previous = 9.0\nfor epoch in range(9):\n    if previous < 0.1:\n        break\n    previous = train()",
        "if previous",
    ),
    "a global": (OF_ALL, "for epoch in range(9):\n    train()\n    adjust()", "schedule.step(last"),
    "an item that is given to a function": (ITEM, "for epoch in range(9):\n    told(train())", "schedule.step(log"),
    "an item of a copy": (
        ITEM,
        "for epoch in range(9):\n    log = dict(train())\n    schedule.step(log['w'])",
        "schedule.step(log['",
    ),
    "an item that is added": (
        ITEM,
        "for epoch in range(9):\n    log = {}\n    log.update(train())\n    schedule.step(log['w'])",
        "schedule.step(log['",
    ),
    "an item that is spread": (
        ITEM,
        "for epoch in range(9):\n    log = {**train()}\n    schedule.step(log['w'])",
        "schedule.step(log['",
    ),
    "an item beside another value": (
        {"give": "return", "given": '{"w": worst}, 1'},
        "for epoch in range(9):\n    log, one = train()\n    schedule.step(log['w'])",
        "schedule.step(log['",
    ),
    "a rate that a function sets": (
        OF_ALL,
        "for epoch in range(9):\n    set_rate(min(0.1, train()))",
        'group["lr"] = rate',
    ),
    "a rate that a static method sets": (
        OF_ALL,
        (
            "class Rates:\n    @staticmethod\n    def put(rate):\n        for group in optimizer.param_groups:\n"
            "            group['lr'] = rate\nfor epoch in range(9):\n    Rates.put(min(0.1, train()))"
        ),
        "group['lr'] = rate",
    ),
    "a rate that a test changes": (
        OF_ALL,
        "rate = 0.1\nfor epoch in range(9):\n    if train() > 1:\n        rate = rate / 2\n    set_rate(rate)",
        'group["lr"] = rate',
    ),
    "a method that looks back": (
        OF_ALL,
        "for epoch in range(9):\n    if judge.is_over(train()):\n        break",
        "if judge",
    ),
    "a property": (
        OF_ALL,
        "for epoch in range(9):\n    judge.add(train())\n    if judge.stop:\n        break",
        "if judge.stop",
    ),
    "a heap": (
        OF_ALL,
        "heap = []\nfor epoch in range(9):\n    heapq.heappush(heap, train())\n    if heap[0] > 1:\n        break",
        "if heap",
    ),
    "a condition that trains": (OF_ALL, "while (w := train()) > 0.5:\n    print(w)", "while (w"),
    "a generator": (
        {"give": "yield", "given": "worst"},
        "for w in train():\n    if w < 0.1:\n        sys.exit()",
        "if w <",
    ),
    "an end that is told as none": (OF_ALL, "if train() > 9:\n    sys.exit(0)", "if train"),
    "a step of the schedule": (
        OF_ALL,
        "for epoch in range(9):\n    if train() < 1:\n        schedule.step(epoch)",
        "if train",
    ),
    "weights that are put back": (
        OF_ALL,
        "kept = model.state_dict()\nfor epoch in range(9):\n    if train() > 1:\n        model.load_state_dict(kept)",
        "if train",
    ),
    "a forward": (OF_ALL, "for epoch in range(9):\n    if train() > 1:\n        model(torch.ones(1, 2))", "if train"),
}


@pytest.mark.parametrize("name", DECIDED)
def test_refused(refused_text, name):
    holes, use, at = DECIDED[name]
    refused_text(
        PROGRAM.replace("{give} {given}", f"{holes['give']} {holes['given']}").replace("{use}", use), "MIG122", at
    )


HARMLESS = {
    "an end that is told as trouble, which ends all": "w = train()\n    if w > 9:\n        sys.exit(1)",
    "printed": "w = train()\n    print(shown(w), schedule.get_last_lr())",
    "the best is kept": "w = train()\n    if w < best:\n        best = w\n        print(best)",
    "there is one": "w = train()\n    if w is not None:\n        schedule.step(epoch)",
    "asked for its length": "history.append(train())\n    if len(history) > 4:\n        break",
    "another value under the name": "w = train()\n    print(w)\n    w = epoch\n    schedule.step(w)",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_converted(convert_text, name):
    use = f"best, history = 9.0, []\nfor epoch in range(9):\n    {HARMLESS[name]}"
    _, result = convert_text(PROGRAM.replace("{give} {given}", "return worst").replace("{use}", use))

    assert "accelerator.backward(loss)" in result


IN_A_CLASS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
class Trainer:
    def __init__(self):
        data = TensorDataset(torch.ones(16, 2), torch.ones(16, 1))
        self.loader = DataLoader(data, batch_size=4)
        self.model = nn.Linear(2, 1)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)
        self.schedule = optim.lr_scheduler.ReduceLROnPlateau(self.optimizer)
        self.losses = []
    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = (self.model(x) - y).pow(2).mean()
        loss.backward()
        self.optimizer.step()
        self.losses.append((y > 1).sum().item())
        self.last = (y > 1).sum().item()
    def adjust(self):
        {adjust}
    def fit(self):
        for epoch in range(3):
            for x, y in self.loader:
                self.step(x, y)
            self.adjust()
            {fit}
Trainer().fit()
"""


@pytest.mark.parametrize(
    ("adjust", "fit", "at"),
    [
        ("self.schedule.step(self.last)", "pass", "self.schedule.step(self.last"),
        ("pass", "if self.losses[-1] < 0.1:\n                break", "if self.losses"),
    ],
)
def test_what_a_step_leaves_in_its_object(refused_text, adjust, fit, at):
    refused_text(IN_A_CLASS.format(adjust=adjust, fit=fit), "MIG122", at)


def test_losses_that_a_step_leaves_in_its_object_are_joined(convert_text):
    text = IN_A_CLASS.format(adjust="self.schedule.step(self.last)", fit="print(self.losses[-1] < 0.1)")
    _, result = convert_text(text.replace("(y > 1).sum().item()", "loss.item()"))

    assert "        self.last = self.accelerator.reduce(loss.item(), reduction=" in result


def test_what_a_step_leaves_in_its_object_may_be_shown(convert_text):
    _, result = convert_text(IN_A_CLASS.format(adjust="print(self.last)", fit="print(self.losses[-1])"))

    assert "self.accelerator.backward(loss)" in result


MAPPED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.ones(16, 2), torch.ones(16, 1))
train, dev = DataLoader(data, batch_size=4, shuffle=True), DataLoader(data, batch_size=4)
model = nn.Linear(2, 1).to(device)
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.1)
schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer)
for epoch in range(3):
    for batch in train:
        x, y = {moved}
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    total = 0.0
    with torch.no_grad():
        for batch in dev:
            rows, labels = {moved}
            out = model(rows)
            total += criterion(out, labels).item()
    total /= len(dev)
    schedule.step({by})
"""


@pytest.mark.parametrize("moved", ["map(lambda x: x.to(device), batch)", "[x.to(device) for x in batch]"])
def test_what_a_lambda_has_for_itself_is_not_the_name_of_a_batch(convert_text, refused_text, moved):
    _, result = convert_text(MAPPED.format(moved=moved, by="total"))

    assert "accelerator.gather_for_metrics((out, labels))" in result
    refused_text(MAPPED.format(moved=moved, by="max(x.item() for x in [y.max()])"), "MIG122", "schedule.step(max")
