"""Optimizers that are given a container of models: what lies in it is trained, and what runs is prepared."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)
net = nn.Linear(4, 4)
head = nn.Linear(4, 1)
{made}
optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)


def train(models):
    for (x,) in loader:
        loss = {run}.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for epoch in range(2):
    train(trained)
torch.save(net.state_dict(), "net.pt")
"""
AVERAGED = "find_unused_parameters=True"
BOTH = "head(net(x))"
MADE = {
    "a list": "trained = nn.ModuleList([net, head])",
    "appended": "trained = nn.ModuleList([])\ntrained.append(net)\ntrained.append(head)",
    "extended": "trained = nn.ModuleList()\ntrained.extend([net, head])",
    "a dictionary": 'trained = nn.ModuleDict({"net": net, "head": head})',
    "one after the other": "trained = nn.Sequential(net, head)",
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_lies_in_a_container_and_runs_is_prepared(convert_text, made):
    _, text = convert_text(PROGRAM.format(made=made, run=BOTH))
    assert "loader, net, head, optimizer = accelerator.prepare(loader, net, head, optimizer)" in text
    assert "accelerator.save(accelerator.unwrap_model(net).state_dict()" in text
    assert AVERAGED not in text


def test_a_container_that_runs_itself_is_prepared(convert_text):
    _, text = convert_text(PROGRAM.format(made="trained = nn.Sequential(net, head)", run="trained(x)"))
    assert "loader, trained, optimizer = accelerator.prepare(loader, trained, optimizer)" in text
    assert AVERAGED not in text


@pytest.mark.parametrize("run", ["models[1](models[0](x))", "models[1](net(x))"])
def test_gradients_are_averaged_after_the_backward_where_it_is_not_seen_what_of_it_runs(convert_text, run):
    _, text = convert_text(PROGRAM.format(made=MADE["a list"], run=run))
    assert "loader, trained, optimizer = accelerator.prepare(loader, trained, optimizer)" in text
    assert AVERAGED in text


def test_so_they_are_where_a_container_runs_and_a_part_of_it_does_besides(convert_text):
    made = "trained = nn.Sequential(net, head)"
    _, text = convert_text(PROGRAM.format(made=made, run="trained(x) + head(x)"))
    assert "loader, trained, optimizer = accelerator.prepare(loader, trained, optimizer)" in text
    assert AVERAGED in text
