"""Folders and files that go with the process that made them: no other process could find the way into them."""

import pytest

PROGRAM = """
import os
import tempfile
from tempfile import TemporaryDirectory

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def keep(model, path):
    torch.save(model.state_dict(), path)


def train(model, optimizer, loader):
    best = 9.0
    with {made} as folder:
        path = {path}
        for epoch in range(2):
            for x, y in loader:
                loss = (model(x) - y).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            {saved}
        model.load_state_dict(torch.load(path))


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
train(model, optimizer, loader)
print(model.weight.sum().item())
"""
PARTS = {
    "made": "TemporaryDirectory()",
    "path": 'os.path.join(folder, "best.pt")',
    "saved": "torch.save(model.state_dict(), path)",
}
OWN = {
    "a folder": {},
    "a folder by its module": {"made": "tempfile.TemporaryDirectory(prefix='a')", "path": 'folder + "/best.pt"'},
    "a file": {"made": "tempfile.NamedTemporaryFile()", "path": "folder.name"},
    "a function that saves": {"saved": "keep(model, path)"},
}


@pytest.mark.parametrize("name", OWN)
def test_each_process_writes_its_own(convert_text, numbers_printed, name):
    _, result = convert_text(PROGRAM.format(**{**PARTS, **OWN[name]}))

    assert "torch.save(accelerator.unwrap_model(model).state_dict(), path)" in result
    assert "wait_for_everyone" not in result
    half = result.replace("batch_size=4", "batch_size=2")
    assert numbers_printed(half, 2) == pytest.approx(numbers_printed(result, 1))


SHARED = {
    "a folder of all": {"made": "open(os.devnull)", "path": '"best.pt"'},
    "a folder of the user's": {"path": 'os.path.join(os.environ.get("OUT", "."), "best.pt")'},
}


@pytest.mark.parametrize("name", SHARED)
def test_other_files_are_the_main_process_alone(convert_text, name):
    _, result = convert_text(PROGRAM.format(**{**PARTS, **SHARED[name]}))

    assert "accelerator.save(accelerator.unwrap_model(model).state_dict(), path)" in result
    assert "accelerator.wait_for_everyone()" in result


def test_a_function_that_saves_elsewhere_too(convert_text, numbers_printed):
    text = PROGRAM.format(**{**PARTS, "saved": "keep(model, path)"}) + 'keep(model, "last.pt")\n'
    _, result = convert_text(text)

    assert "                optimizer.step()\n            keep(model, path)\n" in result
    assert 'if accelerator.is_main_process:\n    keep(model, "last.pt")\n' in result
    half = result.replace("batch_size=4", "batch_size=2")
    assert numbers_printed(half, 2) == pytest.approx(numbers_printed(result, 1))


HIDDEN = """
with TemporaryDirectory() as folder:
    print(os.listdir(folder))


def save(model, folder):
    torch.save(model.state_dict(), os.path.join(folder, "best.pt"))


save(model, "out")
"""


def test_a_parameter_is_not_the_folder_of_that_name_around_it(convert_text):
    """Whoever calls the function says where it writes."""
    parts = {**PARTS, "made": "open(os.devnull)", "path": '"best.pt"', "saved": "pass"}
    _, result = convert_text(PROGRAM.format(**parts) + HIDDEN)

    assert 'if accelerator.is_main_process:\n    save(model, "out")\n' in result
