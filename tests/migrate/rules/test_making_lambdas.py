"""Lambdas that make a model and move it: `make = lambda: Net().to(device)`."""

import pytest

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
{make}


def main():
    model = {made}
    {more}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch_size={size}):
        x, y = x.to(device), y.to(device)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(sum(p.sum().item() for p in model.parameters()))


main()
"""
MAKE = "make = lambda: nn.Linear(4, 1).to(device)"
KEPT = {
    "by a name": {"make": MAKE, "made": "make()"},
    "in a table": {"make": "MAKING = {'small': lambda: nn.Linear(4, 1).to(device)}", "made": "MAKING['small']()"},
    "of what it is given": {"make": "on_device = lambda net: net.to(device)", "made": "on_device(nn.Linear(4, 1))"},
}


@pytest.mark.parametrize("name", KEPT)
def test_what_it_makes_is_prepared(convert_text, numbers_printed, name):
    before = numbers_printed(SOURCE.format(**KEPT[name], more="", size=8), 1)
    _, alone = convert_text(SOURCE.format(**KEPT[name], more="", size=8))
    _, shared = convert_text(SOURCE.format(**KEPT[name], more="", size=4))

    assert "accelerator.prepare(" in alone
    assert numbers_printed(alone, 1) == before
    assert numbers_printed(shared, 2) == pytest.approx(before, rel=1e-4)


@pytest.mark.parametrize(
    ("make", "more"),
    [
        (MAKE, "teacher = make()\n    print(teacher(torch.ones(2, 4).to(device)).sum().item())"),
        (f"{MAKE}\nput = lambda t: t.to(device)", "noise = put(torch.ones(2, 4))"),
    ],
)
def test_what_else_it_moves_is_not_known_to_follow(refused_text, make, more):
    refused_text(SOURCE.format(make=make, made="make()", more=more, size=4), "MIG120", "= lambda", ("a lambda moves",))
