"""A seed that objects have of their class, or are made with: a data class of settings seeds a program as options do."""

import pytest

PROGRAM = """
import os
import time
import torch
from dataclasses import dataclass, field
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

{config}

def main(cfg):
    torch.manual_seed(cfg.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = torch.randn(32, 3)
    loader = DataLoader(TensorDataset(data), batch_size=8, shuffle=True)
    model = nn.Linear(3, 1).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for (x,) in loader:
        optimizer.zero_grad()
        model(x.to(device)).mean().backward()
        optimizer.step()

main({made})
"""
DATA = "@dataclass\nclass Config:\n    lr: float = 0.1\n    seed: int = 17"
ALIKE = {
    "a default": (DATA, "Config()"),
    "made with another": (DATA, "Config(seed=3)"),
    "without a default": ("@dataclass\nclass Config:\n    seed: int", "Config(5)"),
    "a field": ("@dataclass\nclass Config:\n    seed: int = field(default=17)", "Config()"),
    "of a base": (f"{DATA}\nclass Longer(Config):\n    epochs: int = 9", "Longer()"),
    "a plain class": ("class Config:\n    seed = 17", "Config()"),
}
APART = {
    "made with a clock": (DATA, "Config(seed=int(time.time()))"),
    "a clock by default": (DATA.replace("17", "int(time.time())"), "Config()"),
    "set of the class": (f"{DATA}\nConfig.seed = int(os.environ['SLURM_PROCID'])", "Config()"),
    "set of an object": (f"{DATA}\nconfig = Config()\nconfig.seed = os.getpid()", "config"),
    "set below": (f"{DATA}\n    def __post_init__(self):\n        self.seed = os.getpid()", "Config()"),
}


@pytest.mark.parametrize("name", ALIKE)
def test_it_is_the_same_on_all_processes(convert_text, name):
    config, made = ALIKE[name]
    report, result = convert_text(PROGRAM.format(config=config, made=made))

    assert report.changes
    assert "broadcast_object_list" not in result
    assert not [each for each in report.findings if each.code == "MIG123"]


@pytest.mark.parametrize("name", APART)
def test_what_differs_is_not(convert_text, name):
    config, made = APART[name]
    report, result = convert_text(PROGRAM.format(config=config, made=made))

    assert "broadcast_object_list" in result or [each for each in report.findings if each.code == "MIG123"]
