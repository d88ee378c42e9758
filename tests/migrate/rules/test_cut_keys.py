"""Code that cuts `module.` off the keys of what the program saves, whatever they begin with: now they are plain."""

import pytest

from migrate.report.model import Kind

NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)
"""
TRAIN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from net import Net

torch.manual_seed(0)
model = {model}
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
torch.save({{"model": model.state_dict()}}, "net.pt")
"""
USE = """
import torch
from net import Net

def load(path):
    state = torch.load(path)
    found = {{}}
    {cut}
    return found

model = Net()
model.load_state_dict(load("net.pt"))
print(model(torch.ones(1, 2)))
"""
CUT = {
    "in a loop": 'for k, v in state["model"].items():\n        found[k[7:]] = v',
    "by the length of the word": 'for k in state["model"].keys():\n        found[k[len("module.") :]] = 0.0',
    "in a comprehension": 'found = {k[7:]: v for k, v in state["model"].items()}',
}
LEFT = {
    "asked before": 'found = {k[7:] if k.startswith("module.") else k: v for k, v in state["model"].items()}',
    "only some": 'found = {k[7:]: v for k, v in state["model"].items() if "module" in k}',
    "another part": 'found = {k[6:]: v for k, v in state["model"].items()}',
    "no keys of it": "for name in sorted(found):\n        print(name[7:])",
}


def _told(converted, cut, model="nn.DataParallel(Net())"):
    report, files = converted(net=NET, train=TRAIN.format(model=model), use=USE.format(cut=cut))
    assert "accelerator.prepare(" in files["train"]
    return [finding.hint for finding in report.of(Kind.NOTE) if finding.code == "MIG116"]


@pytest.mark.parametrize("name", CUT)
def test_keys_that_are_cut_are_told(converted, name):
    (hint,) = _told(converted, CUT[name])

    assert hint.startswith("k.removeprefix(")


@pytest.mark.parametrize("name", LEFT)
def test_others_are_not(converted, name):
    assert not _told(converted, LEFT[name])


def test_keys_that_were_plain_all_along_are_not(converted):
    assert not _told(converted, CUT["in a loop"], model="Net()")
