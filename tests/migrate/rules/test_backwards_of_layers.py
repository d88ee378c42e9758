"""A `backward` that gives something is a layer's own: that of a tensor gives None, so nothing trains by it."""

import pytest

PROGRAM = """
import torch
from torch import nn

class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return x + self.shift

    def backward(self, z):
        return z - self.shift, 0.0

class Flow(nn.Module):
    def __init__(self, flows):
        super().__init__()
        self.flows = nn.ModuleList(flows)

    def forward(self, x):
        for flow in self.flows:
            x = flow(x)
        return x

    def turned_round(self, z):
        {total}
        for flow in self.flows[::-1]:
            {turned}
        return z

torch.manual_seed(0)
data = torch.ones(8, 2)
model = Flow([Shift(), Shift()])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = (model(data) ** 2).mean()
    loss.backward()
    optimizer.step()
print(model.turned_round(data).mean())
"""
TAKEN = {
    "unpacked": "z, change = flow.backward(z)",
    "one of several": "z = flow.backward(z)[0]",
    "given again": "z = flow.backward(z)",
    "added": "total = total + flow.backward(z)",
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_layer_that_is_turned_round_trains_nothing(convert_text, name):
    _, text = convert_text(PROGRAM.format(total="total = 0", turned=TAKEN[name]))

    assert "accelerator.backward(loss)" in text
    assert TAKEN[name] in text


def test_a_backward_that_gives_nothing_is_that_of_a_loss(convert_text):
    report, _ = convert_text(PROGRAM.format(total="total = 0", turned="flow.backward(z)"))

    assert "MIG105" in [finding.code for finding in report.findings]
