"""Models that a class beside nn.Module trains, from which they inherit: they know themselves without a wrapper."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trained:
    def fit(self, loader):
        self.train()
        for x, y in loader:
            self.zero_grad()
            {run}
            self.loss.backward()
            self.optimizer.step()


class Net(nn.Module, Trained):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=0.01)

    def forward(self, x):
        out = self.layer(x)
        self.loss = nn.functional.mse_loss(out, x)
        return out


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = Net()
print(net)
loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64)), batch_size=4)
net.fit(loader)
"""


@pytest.mark.parametrize("run", ["self.forward(x)", "self(x)", "out = self.forward(x)"])
def test_their_gradients_are_averaged_after_the_backward(convert_text, run):
    _, result = convert_text(PROGRAM.format(run=run))

    assert "DistributedDataParallelKwargs(find_unused_parameters=True)" in result
    assert "accelerator.backward(self.loss)" in result
    assert "unwrap_model(self)" not in result
    assert "accelerator.unwrap_model(net).fit(loader)" in result
