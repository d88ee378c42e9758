"""MIG107: the contexts of a scaler are the accelerator's; all others mean the same on several processes."""

import pytest

LOOP = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()

for x, y in loader:
    with {context}:
        loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
CHANGED = {
    "the old name": "torch.cuda.amp.autocast()",
    "the old name, on": "torch.cuda.amp.autocast(True)",
    "the new name": 'torch.amp.autocast("cuda")',
    "with a dtype": 'torch.autocast(device_type="cuda", dtype=torch.half)',
}
UNCHANGED = {
    "bfloat16": 'with torch.autocast("cuda", dtype=torch.bfloat16):\n    output = model(x)',
    "on the CPU": 'with torch.autocast("cpu"):\n    output = model(x)',
    "turned off": 'with torch.autocast("cuda", enabled=False):\n    output = model(x)',
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(convert_text, name):
    _, result = convert_text(LOOP.format(context=CHANGED[name]))
    assert "    with accelerator.autocast():\n" in result
    assert "autocast(" in result
    assert "cuda" not in result


def test_a_context_among_others(convert_text):
    _, result = convert_text(LOOP.format(context="torch.enable_grad(), torch.cuda.amp.autocast()"))
    assert "    with torch.enable_grad(), accelerator.autocast():\n" in result


def test_a_region_in_full_precision_stays(convert_text):
    inner = "loss = nn.functional.mse_loss(model(x), y)"
    off = "with torch.cuda.amp.autocast(enabled=False):\n            loss = (model_output.float() - y).square().mean()"
    off = f"model_output = model(x)\n        {off}"
    _, result = convert_text(LOOP.format(context="torch.cuda.amp.autocast()").replace(inner, off))
    assert "    with accelerator.autocast():\n" in result
    assert "with torch.cuda.amp.autocast(enabled=False):\n" in result


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged_without_a_scaler(unchanged, name):
    unchanged(step=UNCHANGED[name])
