"""Models that one statement gives their names: told apart, or refused (`analysis/rounds.py`, `prepare/several.py`)."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def placed(*nets):
    return [net.to("cpu") for net in nets]


class Trainer:
    def __init__(self, device):
        self.device = device
        self.code, self.head = nn.Linear(2, 2), nn.Linear(2, 1)
        {moved}
        self.loader = DataLoader(TensorDataset(torch.randn(32, 2), torch.randn(32, 1)), batch_size={batch})
        self.first = optim.SGD(self.code.parameters(), lr=0.1)
        self.second = optim.SGD(self.head.parameters(), lr=0.1)

    def train(self):
        for x, y in self.loader:
            x, y = x.to(self.device), y.to(self.device)
            loss = ((self.head(self.code(x)) - y) ** 2).mean()
            self.first.zero_grad()
            self.second.zero_grad()
            loss.backward()
            self.first.step()
            self.second.step()
        print(self.code.weight.sum().item(), self.head.weight.sum().item())


torch.manual_seed(0)
Trainer("cuda" if torch.cuda.is_available() else "cpu").train()
"""
BOTH = "self.code, self.head"
APART = {
    "a list": f"{BOTH} = [net.to(device) for net in ({BOTH})]",
    "a list with a name": f"nets = [{BOTH}]\n        {BOTH} = [net.to(device).train() for net in nets]",
    "a generator": f"{BOTH} = (net.to(device) for net in [{BOTH}])",
    "wrapped": f"{BOTH} = [nn.DataParallel(net).to(device) for net in ({BOTH})]",
}
MIXED = {
    "a function of each": f"{BOTH} = map(lambda net: net.to(device), ({BOTH}))",
    "a function of all": f"{BOTH} = placed({BOTH})",
    "some of them": f"{BOTH} = [net.to(device) for net in ({BOTH}) if net is not None]",
}


@pytest.mark.parametrize("name", APART)
def test_each_is_prepared_under_its_name(convert_text, numbers_printed, name):
    """Only the first of them was: the gradients of the other were not averaged."""
    _, result = convert_text(PROGRAM.format(moved=APART[name], batch=4))

    assert "self.loader, self.code, self.head, self.first, self.second = self.accelerator.prepare(" in result
    if name in ("a list", "a generator"):
        before = PROGRAM.format(moved=APART[name], batch=8)
        assert numbers_printed(result, 2) == pytest.approx(numbers_printed(before, 1), rel=1e-5)


@pytest.mark.parametrize("name", MIXED)
def test_what_may_be_either_is_refused(refused_text, name):
    finding = refused_text(
        PROGRAM.format(moved=MIXED[name], batch=4), "MIG104", BOTH, ["self.code and self.head", "which of them"]
    )

    assert "a statement of its own" in finding.hint
