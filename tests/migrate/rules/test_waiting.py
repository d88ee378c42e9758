"""Where a loop waits for a TPU in every step."""

import pytest

from migrate.options import Hardware

FOR_TPU = {"hardware": Hardware.TPU}
PROGRAM = """
import torch
{imports}
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
held = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)


def accuracy(output, target):
    return ((output > 0) == target).float().mean().item()


total = 0.0
for epoch in range(2):
    model.train()
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        output = model(x)
        loss = nn.functional.mse_loss(output, y)
        loss.backward()
        optimizer.step()
        {training}
    model.eval()
    with torch.no_grad():
        for x, y in held:
            {evaluation}
    {epoch}
"""


def notes(convert_text, training="pass", evaluation="pass", epoch="pass", imports="", options=FOR_TPU):
    source = PROGRAM.format(imports=imports, epoch=epoch, training=training, evaluation=evaluation)
    report, result = convert_text(source, **options)
    assert "accelerator.backward(loss)" in result
    return [finding for finding in report.findings if finding.code == "MIG125"]


UNTOLD = {
    "nothing": {},
    "after the loop": {"epoch": "print(loss.item())"},
    "every hundred steps": {"training": "if step % 100 == 0:\n            print(loss.item())"},
    "in the first step": {"training": "if step == 0:\n            print(loss.item())"},
    "the tensor": {"training": "total += loss.detach()"},
    "a size": {"training": "total += float(x.size(0))"},
    "numbers of another library": {
        "imports": "import numpy as np",
        "training": "total += np.ones(3).tolist()[0] + np.float32(1).item() * 0",
    },
    "the model": {"epoch": "model.cpu()"},
}


@pytest.mark.parametrize("name", UNTOLD)
def test_untold(convert_text, name):
    assert not notes(convert_text, **UNTOLD[name])


TOLD = {
    "item": "total += loss.item()",
    "a part of it": "total += loss.detach().item() / 2",
    "float": "total += float(loss)",
    "tolist": "shown = output.tolist()",
    "to the host": "shown = output.detach().cpu()",
    "at times else": "if total > 3:\n            total += loss.item()",
}


@pytest.mark.parametrize("name", TOLD)
def test_told_once_for_a_training_loop(convert_text, name):
    (note,) = notes(convert_text, training=TOLD[name])
    assert "waits for the TPU in every step of the loop at line 20" in note.message
    assert note.line == (27 if "\n" in TOLD[name] else 26)
    assert "loss.detach()" in note.hint
    assert "every N steps" in note.hint


def test_the_other_lines_are_named_and_every_loop_is_told(convert_text):
    training = "total += loss.item()\n        best = y.max().item()\n        seen = y.min().item(), y.max().item()"
    told = notes(convert_text, training=training, evaluation="total += (model(x) - y).abs().sum().item()")
    assert [note.line for note in told] == [26, 32]
    assert "and again at line 27, line 28" in told[0].message


def test_a_function_that_is_called_in_every_step(convert_text):
    (note,) = notes(convert_text, training="total += accuracy(output, y)")
    assert note.line == 14
    assert not notes(convert_text, training="if step % 10 == 0:\n            print(accuracy(output, y))")


@pytest.mark.parametrize("package", ["import torch_xla", "from torch_xla.core import xla_model", "import torch_tpu"])
def test_programs_that_name_a_tpu_are_told_without_being_asked(convert_text, package):
    assert len(notes(convert_text, training="total += loss.item()", imports=package, options={})) == 1


def test_others_are_not_told(convert_text):
    assert not notes(convert_text, training="total += loss.item()", options={})
    assert not notes(convert_text, training="total += loss.item()", options={**FOR_TPU, "ignore": ("MIG125",)})
