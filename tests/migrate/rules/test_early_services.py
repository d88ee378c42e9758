"""Runs of a service that the program asks for its settings, which begin before there can be an accelerator."""

import pytest

PROGRAM = """
import torch
import wandb
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main(args):
    BEGIN
    device = torch.device(SETTINGS.device)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 4), torch.randint(3, (32,)))
    loader = DataLoader(data, batch_size=SETTINGS.batch, shuffle=True)
    model = nn.Linear(4, 3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(model.weight.sum().item())


if __name__ == "__main__":
    main({"device": "cpu", "batch": 8})
"""
OFF = ' if os.environ.get("RANK", "0") == "0" else "disabled"'
BEGIN = {
    "through the library": ("wandb.init(config=args)", "wandb.config", f"config=args, mode=None{OFF})"),
    "through the run": ("run = wandb.init(config=args)", "run.config", f"config=args, mode=None{OFF})"),
    "in a mode": ('run = wandb.init(mode="offline")', "run.config", f'mode="offline"{OFF})'),
}
#: A service that counts the runs which are begun.
SERVICE = """
import sys
import types

wandb = types.SimpleNamespace()


def init(config, mode=None):
    print(0 if mode == "disabled" else 1)
    wandb.config = types.SimpleNamespace(**config)


wandb.init = init
sys.modules["wandb"] = wandb
"""


def program(begin: str, settings: str) -> str:
    return PROGRAM.replace("BEGIN", begin).replace("SETTINGS", settings).lstrip()


@pytest.mark.parametrize("name", BEGIN)
def test_the_others_run_is_switched_off(convert_text, name):
    begin, settings, wanted = BEGIN[name]
    _, result = convert_text(program(begin, settings))

    assert wanted in result
    assert "import os\n" in result


def test_a_run_that_nobody_asks_is_told(convert_text):
    report, result = convert_text(program("wandb.init()\n    settings = open_settings(args)", "settings"))

    assert "disabled" not in result
    assert any("it runs before the accelerator exists" in each.message for each in report.findings)


def test_one_run_on_two_processes(convert_text, numbers_printed):
    begin, settings, _ = BEGIN["through the library"]
    _, result = convert_text(program(begin, settings).replace("    print(model.weight.sum().item())\n", ""))

    assert sum(numbers_printed(SERVICE.lstrip() + result, 1)) == 1
    assert sum(numbers_printed(SERVICE.lstrip() + result, 2)) == 1
