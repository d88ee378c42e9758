"""Hooks by which a model takes out what a layer of its own has just made: each step has that of its own batch."""

from pathlib import Path

import pytest

from migrate.options import Options
from migrate.pipeline import run

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


def filled(**holes):
    source = PROGRAM
    for name, text in {**PLAIN, **holes}.items():
        source = source.replace(name, text)
    return source.lstrip()


def told(report):
    return [finding.message for finding in report.findings if TOLD in finding.message]


def notes(convert_text, **holes):
    report, result = convert_text(filled(**holes))
    assert "accelerator.backward(loss)" in result
    return told(report)


@pytest.mark.parametrize("name", OWN)
def test_what_a_forward_takes_from_a_hook_is_its_own(convert_text, name):
    assert notes(convert_text, **OWN[name]) == []


def test_what_is_read_afterwards_is_told(convert_text):
    assert notes(convert_text, AFTER=READ_AFTER)


def test_hooks_of_files_that_the_program_does_not_import():
    hooks = "from torch import nn\n\n\nclass Pruner:\n    def __init__(self, net):\n        self.outputs = {}\n"
    hooks += "        net[0].register_forward_hook(self.keep)\n\n    def keep(self, layer, given, output):\n"
    hooks += "        self.outputs[layer] = output\n\n    def last(self, layer):\n        return self.outputs[layer]\n"
    source = "import torch\nfrom prune import Pruner\nfrom torch import nn\n\nnet = nn.Sequential(nn.Linear(8, 4))\n"
    source += "pruner = Pruner(net)\nnet(torch.ones(1, 8)).sum().backward()\nprint(pruner.last(net[0]))\n"
    Path("prune.py").write_text(hooks)
    Path("pruning.py").write_text(source)
    Path("train.py").write_text(filled())

    assert not told(run(["."], Options()))
    Path("train.py").write_text(filled().replace("import torch\n", "import torch\nfrom prune import Pruner\n", 1))
    assert told(run(["."], Options()))
