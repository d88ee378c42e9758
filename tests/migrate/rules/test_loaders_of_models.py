"""A loader that a model runs over while it is made is another one than that of the training, of the same function."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def provide(flag):
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    return DataLoader(data, batch_size=8, shuffle=flag == "train")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = self._scale()
        self.head = nn.Linear(4, 1)

    def _scale(self):
        total = 0.0
        for batch in provide("train"):
            total += batch[0].abs().sum()
        return total

    def forward(self, x):
        return self.head(x / self.scale)


torch.manual_seed(0)
{made}
optimizer = optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOADER, NET = 'loader = provide("train")', "net = Net()"


@pytest.mark.parametrize("made", [f"{NET}\n{LOADER}", f"{LOADER}\n{NET}"], ids=["after the model", "before it"])
def test_only_the_loader_of_the_training_is_prepared(convert_text, made):
    """What the model adds up was added up over all processes, of a loader that each goes over in full."""
    _, result = convert_text(PROGRAM.replace("{made}", made))

    assert "loader, net, optimizer = accelerator.prepare(loader, net, optimizer)" in result
    assert "gather" not in result
    assert "reduce" not in result
