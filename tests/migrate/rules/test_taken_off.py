"""Trained models that are taken to the CPU: neither wrapper nor batches, which are on the device, may come to them."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

{functions}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
test_loader = DataLoader(data, batch_size=4)
net = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {each}
{end}
"""
SHOWN = "shown = net(torch.ones(1, 2))"
OVER_BATCHES = """
total = 0.0
net.eval()
for x, y in test_loader:
    with torch.no_grad():
        total += nn.functional.mse_loss(net(x), y, reduction="sum").item()
print(total)
"""
OF_ITSELF = "def shown(net):\n    net.cpu()\n    return net(torch.ones(1, 2))\n"
UNWRAPPED = {
    "assigned": ("net = net.cpu()", "net = accelerator.unwrap_model(net).cpu()"),
    "by a device": ('net = net.to(torch.device("cpu"))', 'net = accelerator.unwrap_model(net).to(torch.device("cpu"))'),
    "in a chain": ("net = net.cpu().eval()", "net = accelerator.unwrap_model(net).cpu().eval()"),
    "by itself": ("net.cpu()", "net = accelerator.unwrap_model(net)\nnet.cpu()"),
    "under another name": ('there = net.to("cpu")', 'net = accelerator.unwrap_model(net)\nthere = net.to("cpu")'),
}
STAYS = ("net.cpu()", 'net = net.to("cpu")', 'net.to(torch.device("cpu"))')
LEFT = {
    "nothing runs it": {"end": "net.cpu()\nprint(net.weight)"},
    "moved back": {"each": "net.cpu()\n    torch.save(net.state_dict(), 'net.pt')\n    net.to(device)"},
}
REFUSED = {
    "batches and others": {"end": f"net.cpu()\n{SHOWN}\n{OVER_BATCHES}"},
    "a first batch": {"end": "net.cpu()\nx, y = next(iter(loader))\nshown = net(x)"},
    "a global name": {"functions": "def off():\n    net.cpu()\n", "end": f"off()\n{SHOWN}"},
    "its caller goes on": {"functions": OF_ITSELF, "end": f"shown(net)\n{SHOWN}"},
}


def source(**holes):
    return SOURCE.format(**{"functions": "", "each": "", "end": ""} | holes)


@pytest.mark.parametrize("name", UNWRAPPED)
def test_what_runs_there_is_the_model_inside(convert_text, name):
    before, after = UNWRAPPED[name]
    _, result = convert_text(source(end=f"{before}\n{SHOWN}"))

    assert f"\n{after}\n{SHOWN}\n" in result
    assert "net = nn.Linear(2, 1)\n" in result, "it never comes back to the device: prepare brings it there"


@pytest.mark.parametrize("move", STAYS)
def test_a_model_that_only_batches_meet_stays_with_them(convert_text, move):
    _, result = convert_text(source(end=f"{move}\n{OVER_BATCHES}"))

    assert "cpu" not in result
    assert "gather_for_metrics" in result


def test_a_function_that_takes_its_model_off_names_it_anew(convert_text):
    _, result = convert_text(source(functions=OF_ITSELF, end="print(shown(net))"))

    assert "    net = accelerator.unwrap_model(net)\n    net.cpu()\n" in result


@pytest.mark.parametrize("name", LEFT)
def test_others_are_left(convert_text, name):
    _, result = convert_text(source(**LEFT[name]))

    assert "net.cpu()\n" in result
    assert "net = accelerator" not in result


@pytest.mark.parametrize("name", REFUSED)
def test_tensors_of_both_places_cannot_meet_it(convert_text, name):
    report, _ = convert_text(source(**REFUSED[name]))

    (refusal,) = (finding for finding in report.of(Kind.LEFT) if finding.code == "MIG102")
    assert "net is taken to the CPU here" in refusal.message
