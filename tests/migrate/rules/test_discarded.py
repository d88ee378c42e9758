"""Results of a model that no loss uses: gradients are averaged after backward."""

import pytest

from migrate.options import Target

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 4)
        self.real = nn.Linear(4, 1)
        self.label = nn.Linear(4, 3)
    def forward(self, x):
        hidden = self.body(x)
        {returned}
critic = Critic()
optimizer = optim.SGD(critic.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
for epoch in range(2):
    for (x,) in loader:
        optimizer.zero_grad()
        {step}
        loss.backward()
        optimizer.step()
"""
OWN = "real = self.real(hidden)\n        label = self.label(hidden)\n        return real, label"
DISCARDED = {
    "an underscore": (OWN, "real, _ = critic(x)\n        loss = real.mean()"),
    "a name that nothing reads": (OWN, "real, label = critic(x)\n        loss = real.mean()"),
    "a name that is read before": (
        OWN,
        "label = 1\n        print(label)\n        real, label = critic(x)\n        loss = real.mean()",
    ),
    "in the return": (
        "return self.real(hidden), self.label(hidden)",
        "_, label = critic(x)\n        loss = label.mean()",
    ),
}
USED = {
    "both": (OWN, "real, label = critic(x)\n        loss = real.mean() + label.mean()"),
    "layers of the other": (
        "real = self.label(self.real(hidden).expand(-1, 4))\n        return real, hidden",
        "real, _ = critic(x)\n        loss = real.mean()",
    ),
    "without gradients": (
        OWN,
        "with torch.no_grad():\n            a, _ = critic(x)\n        a, b = critic(x)\n        loss = (a * b).sum()",
    ),
    "divided by itself": (
        OWN,
        "real, label = critic(x)\n        label = label / 2\n        loss = (real * label[:, :1]).mean()",
    ),
    "added to": (OWN, "real, label = critic(x)\n        real += label[:, :1]\n        loss = real.mean()"),
    "written in a branch": (
        OWN,
        "real, label = critic(x)\n        if epoch:\n            label = real\n        loss = (real * label).sum()",
    ),
    "one result": (
        "return self.label(self.real(hidden).expand(-1, 4))",
        "first, _, _ = critic(x).unbind(1)\n        loss = first.mean()",
    ),
}


@pytest.mark.parametrize("name", DISCARDED)
def test_gradients_are_averaged_after_backward(convert_text, name):
    returned, step = DISCARDED[name]
    _, result = convert_text(PROGRAM.format(returned=returned, step=step))

    assert "kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)]" in result


@pytest.mark.parametrize("name", USED)
def test_all_layers_take_part(convert_text, name):
    returned, step = USED[name]
    _, result = convert_text(PROGRAM.format(returned=returned, step=step))

    assert "accelerator.backward(loss)" in result
    assert "find_unused_parameters" not in result


@pytest.mark.parametrize("name", DISCARDED)
def test_accelerate_would_wait_for_them(convert_text, name):
    returned, step = DISCARDED[name]
    before = PROGRAM.format(returned=returned, step=step)
    report, result = convert_text(before, target=Target.ACCELERATE)

    assert result.strip() == before.strip()
    assert any(found.code == "MIG105" and "critic(x)" in found.message for found in report.findings)
