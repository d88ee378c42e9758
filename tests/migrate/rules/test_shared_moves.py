"""Scripts that move their tensors by one function: it moves what each of them makes, too."""

import pytest

from migrate.options import Options
from migrate.pipeline import run

MOVES = """\
import torch


def on_gpu(tensors):
    return [each.cuda() for each in tensors] if torch.cuda.is_available() else tensors
"""
TRAINS = """\
import moving
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear({size}, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in DataLoader(TensorDataset(torch.ones(8, {size}), torch.ones(8, 1)), batch_size=4):
        noise = torch.randn(4, {size})
        x, y, noise = moving.on_gpu([x, y, noise])
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x + noise), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize("scripts", [("one",), ("one", "two")])
def test_what_is_moved_later_is_drawn_where_it_was(tmp_path, monkeypatch, scripts):
    (tmp_path / "moving.py").write_text(MOVES)
    for size, name in enumerate(scripts, 2):
        (tmp_path / f"{name}.py").write_text(TRAINS.format(size=size))
    monkeypatch.chdir(tmp_path)

    changes = {change.path: change.new.decode() for change in run(["."], Options()).changes}

    assert {f"{name}.py" for name in scripts} <= changes.keys()
    assert all("        noise = torch.randn(4, " in changes[f"{name}.py"] for name in scripts)
    assert not any("randn(4, 2, device" in text or "randn(4, 3, device" in text for text in changes.values())
