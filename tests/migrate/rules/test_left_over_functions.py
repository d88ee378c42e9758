"""Functions that nothing calls, and that call what needs the accelerator."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

{listed}

def step(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


{function}


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(TensorDataset(torch.ones(64, 2), torch.ones(64, 1)), batch_size=8, shuffle=True)
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        step(nn.functional.mse_loss(model(x), y), optimizer)


if __name__ == "__main__":
    main()
"""
AGAIN = "def step_again(loss, optimizer):\n    for _ in range(2):\n        step(loss, optimizer)"


def test_they_take_it_from_what_comes_to_call_them(convert_text):
    _, result = convert_text(PROGRAM.format(function=AGAIN, listed=""))

    assert "def step_again(loss, optimizer, accelerator):" in result
    assert "        step(loss, optimizer, accelerator)" in result


OTHERS = {
    "a command": ("def step_once(loss=None, optimizer=None):\n    step(loss, optimizer)", ""),
    "what a package hands on": (AGAIN, "__all__ = ['step_again']"),
    "a method": ("class Steps:\n    def run(self, loss, optimizer):\n        step(loss, optimizer)", ""),
    "what a decorator may call": (f"@register\n{AGAIN}", "from hydra import register"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_may_be_called_by_what_is_not_seen(convert_text, name):
    function, listed = OTHERS[name]
    report, result = convert_text(PROGRAM.format(function=function, listed=listed))

    assert {finding.code for finding in report.of(Kind.LEFT)} & {"MIG904", "MIG907"}
    assert "accelerator" not in result
