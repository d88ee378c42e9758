"""PyTorch that a script has from a file of settings, by `from settings import *`: what it trains is found."""

from pathlib import Path

import pytest

from migrate.options import Options
from migrate.pipeline import run

TRAIN = """
from {module} import *


def train():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for step in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
    print(loss.item())


train()
"""
SETTINGS = "import torch\nimport torch.nn as nn\n\nRATE = 0.1\n"
OTHER = "import tensors as tn\nimport tensors.nn as nn\n\nRATE = 0.1\n"


def codes(module, library="torch"):
    Path("train.py").write_text(TRAIN.format(module=module).lstrip().replace("torch", library))
    return {finding.code for finding in run(["train.py"], Options()).findings}


@pytest.mark.parametrize("module", ["settings", "helpers"])
def test_the_loop_is_found(module):
    Path("settings.py").write_text(SETTINGS)
    Path("helpers.py").write_text("from settings import *\n\n\ndef half(x):\n    return x / 2\n")
    assert "MIG001" in codes(module)


def test_what_another_library_trains_is_none():
    Path("settings.py").write_text(OTHER)
    assert "MIG001" not in codes("settings", "tn")
