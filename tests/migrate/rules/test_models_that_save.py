"""Models that write their own files: the calls are guarded, and nothing is said of what only one process comes to."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)

    def save(self, name=None):
        if name is None:
            name = {name}
        torch.save(self.state_dict(), name)
        return name


model = Net()
loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    {save}
"""
NAMES = {"by the clock": 'time.strftime("net_%m%d.pt")', "written out": '"net.pt"'}


@pytest.mark.parametrize("name", NAMES)
def test_a_save_of_which_nobody_takes_the_name_is_guarded(convert_text, name):
    report, result = convert_text(SOURCE.format(name=NAMES[name], save="model.save()"))

    assert "    if accelerator.is_main_process:\n        accelerator.unwrap_model(model).save()\n" in result
    assert "MIG117" not in {note.code for note in report.of(Kind.NOTE)}


def test_a_name_that_is_taken_is_everybody_s(convert_text):
    report, result = convert_text(SOURCE.format(name=NAMES["written out"], save="last = model.save()"))

    assert "    last = accelerator.unwrap_model(model).save()\n" in result
    assert "MIG117" in {note.code for note in report.of(Kind.NOTE)}


SCRIPTED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(4, 1)
model = torch.jit.script(model)
loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
model.save("model.pt")
"""


def test_a_save_that_is_none_of_the_project_s_is_guarded(convert_text):
    """TorchScript has one, a library's models may: two processes wrote one file."""
    _, result = convert_text(SCRIPTED)

    assert 'if accelerator.is_main_process:\n    accelerator.unwrap_model(model).save("model.pt")\n' in result
