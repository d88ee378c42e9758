import textwrap

import pytest

from migrate.report.model import Kind

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""

NOT_FLAGGED = {
    "an evaluation": "for x, y in loader:\n    print(model(x))",
    "a loop that only steps": "for x, y in loader:\n    optimizer.step()",
    "a loop through an accelerator": """
        from accelerate import Accelerator
        accelerator = Accelerator()
        for x, y in loader:
            accelerator.backward(model(x).sum())
            optimizer.step()
        """,
    "a loop through ours": """
        from runtime import Accelerator
        accelerator = Accelerator()
        for x, y in loader:
            accelerator.backward(model(x).sum())
            optimizer.step()
        """,
    "a loop through Fabric": """
        from lightning import Fabric
        fabric = Fabric()
        for x, y in loader:
            fabric.backward(model(x).sum())
            optimizer.step()
        """,
    "a module of Lightning": """
        import lightning
        class Net(lightning.LightningModule):
            def training_step(self, batch, number):
                for loss in self.losses(batch):
                    loss.backward()
        """,
    "an autograd function": """
        class Double(torch.autograd.Function):
            @staticmethod
            def backward(ctx, gradient):
                for part in gradient:
                    part.backward()
        """,
    "nothing": "",
}


@pytest.mark.parametrize("name", NOT_FLAGGED)
def test_not_flagged(convert_text, name):
    body = textwrap.dedent(NOT_FLAGGED[name])
    report, result = convert_text(HEAD + body)

    assert not report.of(Kind.LOOP)
    assert not report.changes
    assert result == HEAD.lstrip("\n") + body


FLAGGED = {
    "plain": ("for x, y in loader:\n    model(x).sum().backward()\n    optimizer.step()", ["for x, y in loader:"]),
    "the innermost": (
        "for epoch in range(2):\n    for x, y in loader:\n        model(x).sum().backward()\n        optimizer.step()",
        ["    for x, y in loader:"],
    ),
    "two": (
        (
            "for x, y in loader:\n    model(x).sum().backward()\n    optimizer.step()\n"
            "for z, _ in loader:\n    model(z).sum().backward()\n    optimizer.step()"
        ),
        ["for x, y in loader:", "for z, _ in loader:"],
    ),
    "by a function that it calls": (
        "def step(x):\n    model(x).sum().backward()\n    optimizer.step()\nfor x, y in loader:\n    step(x)",
        ["for x, y in loader:"],
    ),
    "once for two losses": (
        "for x, y in loader:\n    model(x).sum().backward()\n    model(x).mean().backward()\n    optimizer.step()",
        ["for x, y in loader:"],
    ),
    "without a loader": (
        "while True:\n    model(torch.randn(4, 2)).sum().backward()\n    optimizer.step()",
        ["while True:"],
    ),
    "without an optimizer, although it is not converted": (
        "for x, y in loader:\n    model(x).sum().backward()",
        ["for x, y in loader:"],
    ),
}


@pytest.mark.parametrize("name", FLAGGED)
def test_flagged(convert_text, name):
    body, places = FLAGGED[name]
    source = (HEAD + body).lstrip("\n")
    report, _ = convert_text(source)

    loops = report.of(Kind.LOOP)
    assert [source.splitlines()[loop.line - 1] for loop in loops] == places
    assert {loop.code for loop in loops} == {"MIG001"}
    assert all(loop.converts is ("not converted" not in name) for loop in loops)
    assert all(loop.message.startswith("training loop in plain PyTorch") for loop in loops)


def test_a_flag_names_what_stands_in_the_way(convert_text):
    report, _ = convert_text(HEAD + "for x, y in loader:\n    model(x).sum().backward()")

    (loop,) = report.of(Kind.LOOP)
    assert "not converted (MIG902)" in loop.message
