"""What a function is given and prepares in a branch: `migrate/programs/prepare/at_times.py`."""

import pytest

PROGRAM = """
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
held = DataLoader(data, batch_size=8)


def evaluate(net, loader):
    net.eval()
    with torch.no_grad():
        return sum(nn.functional.mse_loss(net(x.to(device)), y.to(device)).item() for x, y in loader)


def fit(net, loader, path):
    {above}
    if os.path.isfile(path):
        {there}
    else:
        {made}
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(net.state_dict(), path)
    {below}


net = nn.Linear(4, 1).to(device)
fit(net, DataLoader(data, batch_size=8, shuffle=True), "net.pt")
"""
MADE = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)"
BELOW = {
    "handed over": ("print(evaluate(net, held))", "net, held"),
    "handed over by keyword": ("print(evaluate(loader=held, net=net))", "net"),
    "called": ("print(net(torch.ones(1, 4, device=device)))", "net(torch"),
    "gone over": ("for x, y in loader:\n        print(len(x))", "in loader"),
}
KEPT = {
    "what is only asked": {"below": "print(len(loader), sum(p.numel() for p in net.parameters()))"},
    "a function that is left": {"there": "return", "below": BELOW["handed over"][0]},
    "what is made above": {"above": MADE, "made": "net.train()", "below": BELOW["handed over"][0]},
}


def program(above="pass", there="print('there')", made=MADE, below="pass"):
    return PROGRAM.format(above=above, there=there, made=made, below=below)


@pytest.mark.parametrize("name", BELOW)
def test_what_may_be_raw_below_the_branch_is_refused(refused_text, name):
    below, at = BELOW[name]
    refused_text(program(below=below), "MIG104", at, ["only prepared at times, by `os.path.isfile(path)`"])


@pytest.mark.parametrize("name", KEPT)
def test_what_is_prepared_wherever_it_is_used_is_converted(convert_text, name):
    _, result = convert_text(program(**KEPT[name]))

    assert "accelerator.prepare(" in result
