"""Models and results that a training step draws from: each process may have drawn others."""

import pytest

PROGRAM = """
import random
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine = nn.Linear(4, 3)
        self.coarse = nn.Linear(4, 3)

    def forward(self, x):
        return self.fine(x), self.coarse(x)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.arange(64) % 3), batch_size=4, shuffle=True)
model, other = Net().to(device), Net().to(device)
optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
criterion = nn.CrossEntropyLoss()
for x, y in loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    STEP
    loss.backward()
    optimizer.step()
total = sum(p.sum().item() for net in (model, other) for p in net.parameters())
print(int(total == total))
"""
HANDLER = "DistributedDataParallelKwargs(find_unused_parameters=True)"
BOTH = "fine, coarse = model(x)\nfiner, coarser = other(x)\n"
DRAWN = {
    "models": (
        "if random.random() < 0.5:\n    fine, coarse = model(x)\nelse:\n    fine, coarse = other(x)\n"
        "loss = criterion(fine, y) + criterion(coarse, y)"
    ),
    "models in an expression": (
        "fine, coarse = model(x) if random.random() < 0.5 else other(x)\nloss = criterion(fine + coarse, y)"
    ),
    "one more model": (
        "loss = sum(criterion(each, y) for each in model(x))\n"
        "if random.random() < 0.5:\n    loss = loss + other(x)[0].sum()"
    ),
    "results": BOTH + "loss = criterion(fine, y) if random.random() < 0.5 else criterion(coarse, y)",
    "results by a draw with a name": (
        BOTH + "is_fine = random.random() < 0.5\nif is_fine:\n    loss = criterion(fine, y)\n"
        "else:\n    loss = criterion(coarse, y)"
    ),
}


def _program(step: str) -> str:
    return PROGRAM.replace("STEP", step.replace("\n", "\n    "))


@pytest.mark.parametrize("name", DRAWN)
def test_gradients_are_averaged_after_the_backward(convert_text, name):
    _, result = convert_text(_program(DRAWN[name]))

    assert HANDLER in result


ALIKE = {
    "the loss": BOTH
    + "loss = criterion(fine + coarse, y) if random.random() < 0.5 else 2 * criterion(fine + coarse, y)",
    "what is printed": BOTH + "loss = criterion(fine + coarse, y)\nif random.random() < 0.5:\n    print(len(x))",
    "to act": (
        BOTH + "loss = criterion(fine + coarse, y)\n"
        "if random.random() < 0.5:\n    action = other(x)[0].argmax()\nelse:\n    action = random.randrange(3)\n"
        "print(action)"
    ),
    "to act without gradients": (
        "guess = x[:, :3]\nif random.random() < 0.5:\n    with torch.no_grad():\n        guess = other(x)[0]\n"
        "fine, coarse = model(x)\nloss = criterion(fine + coarse - guess, y)"
    ),
    "without gradients": (
        BOTH
        + "loss = criterion(fine + coarse, y)\nwith torch.no_grad():\n    if random.random() < 0.5:\n        other(x)"
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_the_same_models_take_part(convert_text, name):
    _, result = convert_text(_program(ALIKE[name]))

    assert "accelerator.backward(loss)" in result
    assert HANDLER not in result


@pytest.mark.parametrize("name", ["models", "results"])
def test_processes_that_draw_others_train_on(convert_text, numbers_printed, name):
    _, result = convert_text(_program(DRAWN[name]))

    assert numbers_printed(result, 2) == [1.0]
