"""What a training loop leaves in places that others have, too: `migrate/programs/shares/read_elsewhere.py`."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""
ITEM = f"def train(stats):{STEP}        stats['loss'] += loss.item() * len(x)\n"
LISTS = f"def train(losses):{STEP}        losses.append(loss.item() * len(x))\n"
ATTRIBUTE = f"""
class Stats:
    def __init__(self):
        self.total, self.steps = 0.0, 0

def train(stats):{STEP}        stats.total += loss.item()
"""
METHODS = """
class Trainer:
    def __init__(self):
        self.history = {"loss": [], "rate": []}

    def train(self):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            self.history["loss"].append(loss.item() * len(x))

    def fit(self):
        self.train()
        SHOW
"""
NAMES = f"history = []\n\ndef train():{STEP}        history.append(loss.item() * len(x))\n"

READ = {
    "an item of what a caller keeps": (
        ITEM + "kept = {'loss': 0.0}\ntrain(kept)\nprint(kept['loss'] / len(data))\n",
        "stats['loss']",
    ),
    "the dictionary as a whole": (ITEM + "kept = {'loss': 0.0}\ntrain(kept)\nprint(kept)\n", "stats['loss']"),
    "a list that goes on": (
        LISTS + "losses = []\nfor epoch in range(2):\n    print(losses[-3:])\n    train(losses)\n",
        "losses",
    ),
    "what a caller of the caller keeps": (
        LISTS + "def run(kept):\n    train(kept)\n\nlosses = []\nrun(losses)\nprint(sum(losses))\n",
        "losses",
    ),
    "under a keyword": (LISTS + "kept = {'a': []}\ntrain(losses=kept['a'])\nprint(kept['a'])\n", "losses"),
    "an attribute of what is handed over": (
        ATTRIBUTE + "stats = Stats()\ntrain(stats)\nprint(stats.total)\n",
        "stats.total",
    ),
    "an attribute, in another method": (
        METHODS.replace("SHOW", "print(self.history['loss'][-1])") + "\nTrainer().fit()\n",
        "self.history['loss']",
    ),
    "an attribute, from outside": (
        METHODS.replace("SHOW", "pass") + "\ntrainer = Trainer()\ntrainer.fit()\nprint(trainer.history)\n",
        "self.history['loss']",
    ),
    "a name of the module": (NAMES + "train()\nprint(sum(history))\n", "history"),
    "a name of the module, in a function": (NAMES + "def show():\n    print(history)\n\ntrain()\nshow()\n", "history"),
}
NOT_READ = {
    "made for the call": ITEM + "train({'loss': 0.0})\n",
    "never looked at": ITEM + "stats = {'loss': 0.0}\ntrain(stats)\n",
    "looked at before": ITEM + "stats = {'loss': 0.0}\nprint(stats)\ntrain(stats)\n",
    "another item": ITEM + "stats = {'loss': 0.0, 'rate': 1}\ntrain(stats)\nprint(stats['rate'])\n",
    "another attribute": ATTRIBUTE + "stats = Stats()\ntrain(stats)\nprint(stats.steps)\n",
    "filled further": LISTS + "losses = []\ntrain(losses)\nlosses.append(3.0)\nlosses.clear()\n",
    "another item of an attribute": METHODS.replace("SHOW", "print(self.history['rate'])") + "\nTrainer().fit()\n",
    "a parameter that becomes another thing": (
        f"def train(losses):\n    losses = []{STEP}        losses.append(loss.item() * len(x))\n"
        "losses = []\ntrain(losses)\nprint(losses)\n"
    ),
    "an object of another class": (
        METHODS.replace("SHOW", "pass")
        + "\nclass Other:\n    history = {'loss': []}\n\nTrainer().fit()\nprint(Other().history)\n"
    ),
    "a name of a function": NAMES + "def show(history):\n    print(history)\n\ntrain()\nshow([])\n",
}


def _told(report):
    messages = [finding.message for finding in report.findings if finding.code == "MIG114"]
    return [each.partition(",")[0] for each in messages if "read after this loop" in each]


@pytest.mark.parametrize("name", READ)
def test_what_others_read_later_is_told(convert_text, name):
    source, place = READ[name]

    report, result = convert_text(HEAD + source)

    assert "accelerator.prepare(" in result
    assert _told(report) == [place]


@pytest.mark.parametrize("name", NOT_READ)
def test_what_nobody_reads_later_is_not_told(convert_text, name):
    report, result = convert_text(HEAD + NOT_READ[name])

    assert "accelerator.prepare(" in result
    assert _told(report) == []
