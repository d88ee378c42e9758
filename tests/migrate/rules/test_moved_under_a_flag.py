"""A device that is always the GPU, and a flag by which the model and the data are moved there, or stay."""

import pytest

PROGRAM = """
import torch
from torch import nn
{above}

torch.manual_seed(0)
data = torch.arange(64.0).view(16, 4) / 64
held = torch.ones(4, 4)
{made}
{moved}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    x = data[step * 4 : step * 4 + 4]
    {batch}
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
print(model(held).mean().item())
"""
MADE = "model = nn.Linear(4, 1)"
MOVED = "if use_gpu:\n    model.to(device)\n    held = held.to(device)"
BATCH = "if use_gpu:\n        x = x.to(device)"
DEVICE = "device = torch.device('cuda')"
ASKED = "use_gpu = False"
AVAILABLE = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"
KEPT = {
    "above": {"above": f"{ASKED}\n{DEVICE}"},
    "the device first": {"above": f"{DEVICE}\n{ASKED}"},
    "the device in the same branch": {"above": ASKED, "moved": MOVED.replace("    model", f"    {DEVICE}\n    model")},
    "the best device there is": {"above": f"{ASKED}\n{AVAILABLE}"},
    "the flag below the model": {"above": DEVICE, "made": f"{MADE}\n{ASKED}"},
    "an expression": {"above": f"{ASKED}\n{DEVICE}", "batch": "x = x.to(device) if use_gpu else x"},
    "and whether there is one": {
        "above": f"{ASKED}\n{DEVICE}",
        "batch": "if use_gpu and torch.cuda.is_available():\n        x = x.to(device)",
    },
}
MOVES_ALWAYS = {
    "batches are moved without it": {"batch": "x = x.to(device)"},
    "the model, too": {"moved": "model.to(device)\nif use_gpu:\n    held = held.to(device)"},
    "in both branches": {"moved": "if use_gpu:\n    model.to(device)\nelse:\n    model = model.double().to(device)"},
    "the model is made there": {
        "above": f"use_gpu = True\n{AVAILABLE}",
        "made": "if use_gpu:\n    model = nn.Linear(4, 1)\n    model.to(device)",
        "moved": "",
        "batch": BATCH,
    },
    "no model is moved": {"made": f"model = nn.Linear(4, 1).to({DEVICE[9:]})", "moved": "", "batch": BATCH},
}


def filled(**parts):
    return PROGRAM.format(**{"above": f"{ASKED}\n{DEVICE}", "made": MADE, "moved": MOVED, "batch": BATCH} | parts)


@pytest.mark.parametrize("parts", KEPT.values(), ids=KEPT)
def test_the_accelerator_goes_by_the_flag(parts, convert_text):
    _, result = convert_text(filled(**parts))
    assert "Accelerator(cpu=not use_gpu)" in result


@pytest.mark.parametrize("parts", MOVES_ALWAYS.values(), ids=MOVES_ALWAYS)
def test_a_flag_that_something_is_moved_without_is_none(parts, convert_text):
    _, result = convert_text(filled(**parts))
    assert "cpu=not" not in result


def test_the_numbers_are_those_of_the_cpu(convert_text, numbers_printed):
    source = filled()
    _, result = convert_text(source)
    assert numbers_printed(result, 1) == numbers_printed(source, 1) == numbers_printed(result, 2)


def test_a_flag_that_is_not_known_where_the_accelerator_is_made_keeps_the_program(refused_text):
    moved = "def place(model):\n    use_gpu = False\n    if use_gpu:\n        model.to(device)\nplace(model)"
    refused_text(filled(above=DEVICE, moved=moved, batch=""), "MIG101", "if use_gpu:")


def test_a_device_that_is_read_before_the_flag_is_there_keeps_the_program(refused_text):
    parts = {"above": f"{DEVICE}\nprint(device.type == 'cuda')", "made": f"{MADE}\n{ASKED}"}
    refused_text(filled(**parts), "MIG100", "device.type")
