"""Layers that a step may leave out: each process may leave out others, so gradients are averaged after the backward."""

import textwrap

import pytest

from migrate.options import Target

PROGRAM = """
import random
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.label = nn.Embedding(3, 4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.router = Router()

    def helped(self, x, y):
        return x + self.label(y)

    def forward(self, x, y=None):
        x = self.body(x)
        {forward}
        return x


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        {routed}
        return x


def main(unlabeled):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, dtype=torch.long))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        {batch}
        loss = ({call} - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main(False)
"""
GIVEN = "if y is not None:\n            x = x + self.label(y)"
EMPTIED = "if random.random() < 0.1:\n            y = None"
DROPPED = """for block in self.blocks:
            if self.training and random.random() < 0.1:
                continue
            x = block(x)"""
HANDLER = "DistributedDataParallelKwargs(find_unused_parameters=True)"
LEFT_OUT = {
    "what is not there in some steps": (GIVEN, EMPTIED, "model(x, y)"),
    "by its name": (GIVEN, EMPTIED, "model(x, y=y)"),
    "chosen in the call": (GIVEN, "pass", "model(x, y if random.random() > 0.1 else None)"),
    "by a method": ("if y is not None:\n            x = self.helped(x, y)", EMPTIED, "model(x, y)"),
    "the other way round": (
        GIVEN.replace("is not None", "is None").replace("self.label(y)", "self.label.weight.sum() * self.body(x)"),
        EMPTIED,
        "model(x, y)",
    ),
    "layers that are dropped": (
        DROPPED,
        "pass",
        "model(x)",
    ),
    "a draw with a name": (
        "drawn = torch.rand(1)\n        if drawn < 0.1:\n            x = self.blocks[0](x)",
        "pass",
        "model(x)",
    ),
    "in an expression": ("x = self.router(x) if random.random() < 0.1 else self.body(x)", "pass", "model(x)"),
    "a flag that is drawn in the call": (
        "x = self.router(x) if y else x",
        "pass",
        "model(x, random.random() < 0.1)",
    ),
    "a flag that is drawn before": (
        "if y:\n            x = self.router(x)",
        "flag = random.random() < 0.1",
        "model(x, flag)",
    ),
    "a name that is drawn": (
        'if y == "routed":\n            x = self.router(x)',
        'mode = random.choice(["routed", "plain"])',
        "model(x, mode)",
    ),
    "a flag of the model": (
        "if self.is_deep:\n            x = self.router(x)",
        "model.is_deep = random.random() < 0.1",
        "model(x)",
    ),
    "a place that is drawn": ("x = self.blocks[y](x)", "task = random.randrange(3)", "model(x, task)"),
    "a layer that is drawn": ("x = random.choice(self.blocks)(x)", "pass", "model(x)"),
    "layers by places that are drawn": (
        "for i in random.sample(range(3), 2):\n            x = self.blocks[i](x)",
        "pass",
        "model(x)",
    ),
    "as many as are drawn": (
        "for block in self.blocks[: random.randint(1, 3)]:\n            x = block(x)",
        "pass",
        "model(x)",
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_gradients_are_averaged_after_the_backward(convert_text, name):
    forward, batch, call = LEFT_OUT[name]
    _, result = convert_text(PROGRAM.format(forward=forward, batch=batch, call=call, routed="pass"))

    assert HANDLER in result


SENT = {
    "what it is on average": "if x.mean() > 0:\n    x = x + expert(x)",
    "a mask": "if (chosen == i).any():\n    x = x + expert(x)",
    "a mask with a name": "mask = chosen == i\nif not mask.any():\n    continue\nx = expert(x)",
    "a number": "count = (chosen == i).sum()\nif count.item() > 0:\n    x = x + expert(x)",
    "rows": "rows = torch.where(chosen == i)[0]\nif rows.numel() > 0:\n    x[rows] = expert(x[rows])",
    "rows among others": (
        "rows, places = torch.where((chosen == i)[:, None])\nif rows.shape[0] == 0:\n    continue\n"
        "x[rows] = expert(x[rows])"
    ),
    "some of the rows": (
        "rows = torch.nonzero(chosen == i).squeeze(-1)\nrows = rows[:3] if len(rows) > 3 else rows\n"
        "if len(rows) > 0:\n    x[rows] = self.experts[i](x[rows])"
    ),
    "what a mask leaves": "mine = x[chosen == i]\nif mine.size(0):\n    x = x + expert(mine).mean()",
    "an expert by its place": "layer = self.experts[i]\nif (chosen == i).any():\n    x = x + layer(x)",
}


@pytest.mark.parametrize("name", SENT)
def test_experts_to_which_no_row_is_sent(convert_text, name):
    sent = textwrap.indent(SENT[name], " " * 12)
    routed = f"chosen = x.argmax(-1) % 3\n        for i, expert in enumerate(self.experts):\n{sent}"
    filled = {"forward": "x = self.router(x)", "batch": "pass", "call": "model(x)", "routed": routed}
    _, result = convert_text(PROGRAM.format(**filled))

    assert HANDLER in result


NOT_SENT = {
    "a size": "if x.size(0) > 1:\n            x = self.experts[0](x)",
    "a length": "if len(self.experts) > 1:\n            x = self.experts[0](x)",
    "a dimension": "if torch.where(x > 0, x, 0).shape[1] == 4:\n            x = self.experts[0](x)",
    "no layer": "if x.isnan().any():\n            raise ValueError(x)",
}


@pytest.mark.parametrize("name", NOT_SENT)
def test_tests_that_come_out_alike(convert_text, name):
    filled = {"forward": "x = self.router(x)", "batch": "pass", "call": "model(x)", "routed": NOT_SENT[name]}
    _, result = convert_text(PROGRAM.format(**filled))

    assert "accelerator = Accelerator()" in result


ALWAYS = {
    "always given": (GIVEN, "pass", "model(x, y)"),
    "never given": (GIVEN, "pass", "model(x)"),
    "the same in every step": (GIVEN, "pass", "model(x, y if unlabeled else None)"),
    "an option": (GIVEN, "if unlabeled:\n            y = None", "model(x, y)"),
    "no layer": ("if random.random() < 0.1:\n            x = x.flip(1)", "pass", "model(x)"),
    "no layer in an expression": ("x = x.flip(1) if random.random() < 0.1 else x", "pass", "model(x)"),
    "a flag that is always the same": ("x = self.router(x) if y else x", "pass", "model(x, True)"),
    "a place of each in turn": ("for i in range(3):\n            x = self.blocks[i](x)", "pass", "model(x)"),
    "as often as is drawn": ("for _ in range(random.randint(1, 3)):\n            x = self.body(x)", "pass", "model(x)"),
    "a word that is drawn": ("x = x + random.choice([0.1, 0.2])", "pass", "model(x)"),
    "the mode": ("if self.training:\n            x = self.blocks[0](x)", "pass", "model(x)"),
}


@pytest.mark.parametrize("name", ALWAYS)
def test_all_steps_run_the_same_layers(convert_text, name):
    forward, batch, call = ALWAYS[name]
    _, result = convert_text(PROGRAM.format(forward=forward, batch=batch, call=call, routed="pass"))

    assert "accelerator = Accelerator()" in result


def test_with_accelerate_it_is_refused(convert_text):
    forward, batch, call = LEFT_OUT["by its name"]
    before = PROGRAM.format(forward=forward, batch=batch, call=call, routed="pass")
    report, result = convert_text(before, target=Target.ACCELERATE)

    assert "accelerator" not in result
    assert any("makes gradients that DistributedDataParallel does not average" in f.message for f in report.findings)
