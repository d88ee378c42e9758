"""Hooks of parameters are given the gradient of one process's batch, before those of all are averaged."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(64, 2)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size={size}, shuffle=True)
model = nn.Linear(2, 1)
mask = torch.tensor([[1.0, 0.0]])
def clamp(grad):
    return grad.clamp(-0.1, 0.1)
def masked(grad):
    return grad * mask
{hook}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    {below}
    optimizer.step()
print(*(round(each.item(), 6) for each in model.weight.flatten()))
"""
EACH = "for p in model.parameters():\n    p.register_hook({})"
TOLD = {
    "a lambda": EACH.format("lambda g: g.clamp(-0.1, 0.1)"),
    "a function": "model.weight.register_hook(clamp)",
    "normed": EACH.format("lambda g: g / g.norm()"),
    "printed": EACH.format("lambda g: print(g.norm())"),
}
NOT_TOLD = {
    "a factor": EACH.format("lambda g: 0.5 * g"),
    "a mask": "model.weight.register_hook(masked)",
    "turned round": EACH.format("lambda grad: -grad / 2"),
}


@pytest.mark.parametrize("name", [*TOLD, *NOT_TOLD])
def test_what_bends_gradients_is_told(convert_text, name):
    report, _ = convert_text(PROGRAM.format(size=8, hook={**TOLD, **NOT_TOLD}[name], below="pass"))

    assert report.changes
    told = [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG105"]
    assert bool(told) is (name in TOLD)


@pytest.mark.parametrize("hook", [NOT_TOLD["a factor"], NOT_TOLD["a mask"]])
def test_what_multiplies_gives_what_one_process_has(convert_text, numbers_printed, hook):
    alone = PROGRAM.format(size=8, hook=hook, below="pass")
    _, halves = convert_text(PROGRAM.format(size=4, hook=hook, below="pass"))

    assert numbers_printed(halves, 2) == pytest.approx(numbers_printed(alone, 1), abs=1e-5)


def test_the_way_out_leads_out(convert_text, numbers_printed):
    below = "[p.grad.clamp_(-0.1, 0.1) for p in model.parameters()]"
    alone = PROGRAM.format(size=8, hook=TOLD["a lambda"], below="pass")
    _, halves = convert_text(PROGRAM.format(size=4, hook="", below=below))

    assert numbers_printed(halves, 2) == pytest.approx(numbers_printed(alone, 1), abs=1e-5)
