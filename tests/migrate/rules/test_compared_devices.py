"""Comparisons of the device with the GPU that it was: `migrate/rules/compared_devices.py`."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, device):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        seen = torch.ones(1, device=device)
        {inside}


device = torch.device("{gpu}" if torch.cuda.is_available() else "cpu")
{outside}
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(32, 4), torch.ones(32, 1)), batch_size=8)
train(model, loader, optimizer, device)
"""


def program(outside="pass", inside="pass", gpu="cuda"):
    return PROGRAM.format(outside=outside, inside=inside, gpu=gpu).lstrip("\n")


@pytest.mark.parametrize("gpu", ["cuda", "cuda:0"])
@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("device == torch.device('{gpu}')", 'device.type == "cuda"'),
        ("torch.device('{gpu}') != device", 'device.type != "cuda"'),
        ("str(device) == '{gpu}'", 'device.type == "cuda"'),
    ],
)
def test_a_comparison_with_the_gpu_that_it_was_asks_for_its_kind(convert_text, asked, kind, gpu):
    _, result = convert_text(program(f"pinned = {asked.format(gpu=gpu)}", gpu=gpu))

    assert f"pinned = {kind}\n" in result


def test_so_it_does_in_a_function_that_is_handed_the_device(convert_text):
    _, result = convert_text(program(inside="pinned = device == torch.device('cuda')"))

    assert 'pinned = device.type == "cuda"\n' in result


@pytest.mark.parametrize(
    "asked",
    [
        "device == torch.device('cpu')",
        "device == torch.device('cuda:1')",
        "torch.ones(1).device == torch.device('cuda')",
        "device.type == 'cuda'",
        "str(device) == 'cpu'",
    ],
)
def test_other_comparisons_stay(convert_text, asked):
    _, result = convert_text(program(f"pinned = {asked}"))

    assert f"pinned = {asked}\n" in result
