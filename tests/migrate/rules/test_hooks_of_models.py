"""Hooks by which a model takes out what a layer of its own has just made: each step has that of its own batch."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Wrapper(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.hidden = {}
        self.net[0].register_forward_hook(self.keep)

    def keep(self, layer, given, output):
        KEPT

    def embed(self, x):
        self.net(x)
        return HIDDEN

    def forward(self, x):
        return self.embed(x).flatten(1)


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(4, (64,))), batch_size=8, shuffle=True)
model = nn.Sequential(Wrapper(nn.Sequential(nn.Linear(8, 4), nn.ReLU())), nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
AFTER
"""
TOLD = "filled while the model runs, is of one process's share of the data"
PLAIN = {"KEPT": "self.hidden['last'] = output", "HIDDEN": "self.hidden['last']", "AFTER": "print(1)"}
OTHER = """
class Other:
    def __init__(self):
        self.hidden = {}

    def keep(self, output):
        self.hidden['last'] = output
"""
OWN = {
    "in its forward": {},
    "another that only fills its own": {"AFTER": OTHER},
}
READ_AFTER = "print(model[0].hidden['last'].mean().item())"


def notes(convert_text, **holes):
    source = PROGRAM
    for name, text in {**PLAIN, **holes}.items():
        source = source.replace(name, text)
    report, result = convert_text(source.lstrip())
    assert "accelerator.backward(loss)" in result
    return [finding.message for finding in report.findings if TOLD in finding.message]


@pytest.mark.parametrize("name", OWN)
def test_what_a_forward_takes_from_a_hook_is_its_own(convert_text, name):
    assert notes(convert_text, **OWN[name]) == []


def test_what_is_read_afterwards_is_told(convert_text):
    assert notes(convert_text, AFTER=READ_AFTER)
