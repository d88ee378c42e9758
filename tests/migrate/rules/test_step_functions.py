"""Loops that are handed what to do with a batch: to train, or to evaluate."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

def make_train_step(model, optimizer):
    def train_step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()
    return train_step

def make_test_step(model):
    def test_step(x, y):
        return nn.functional.mse_loss(model(x), y).item()
    return test_step

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
train_loader, test_loader = DataLoader(data, batch_size=4), DataLoader(data, batch_size=2)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
train_step, test_step = make_train_step(model, optimizer), make_test_step(model)
"""
HANDED = """
def run(loader, step):
    losses = []
    for x, y in loader:
        losses.append(step(x, y))
    return sum(losses) / len(losses)

for epoch in range(2):
    trained = run(train_loader, train_step)
    with torch.no_grad():
        tested = run(test_loader, test_step)
    print(trained, tested)
"""
CHOSEN = """
def run(testing=False):
    if testing:
        loader = test_loader
        step = test_step
    else:
        loader = train_loader
        step = train_step
    losses = []
    for x, y in loader:
        losses.append(step(x, y))
    return sum(losses) / len(losses)

for epoch in range(2):
    print(run(), run(testing=True))
"""
BY_EXPRESSION = CHOSEN.replace(
    CHOSEN[CHOSEN.index("    if testing") : CHOSEN.index("    losses")],
    "    loader = test_loader if testing else train_loader\n    step = test_step if testing else train_step\n",
)
WITH_GRADIENTS = HANDED.replace("with torch.no_grad():", "if True:")
SWITCHED_ON = HANDED.replace(
    "        losses.append(step(x, y))", "        with torch.enable_grad():\n            losses.append(step(x, y))"
)


@pytest.mark.parametrize(
    ("source", "test"),
    [(HANDED, "torch.is_grad_enabled()"), (CHOSEN, "not testing"), (BY_EXPRESSION, "not testing")],
)
def test_the_shares_are_joined_where_the_loop_trains(convert_text, source, test):
    _, new = convert_text(HEAD + source)

    assert f"    if {test}:\n        losses = accelerator.gather_for_metrics(losses)\n" in new
    assert "train_loader, model, optimizer = accelerator.prepare(train_loader, model, optimizer)" in new


@pytest.mark.parametrize("source", [WITH_GRADIENTS, SWITCHED_ON])
def test_where_it_trains_is_not_told(convert_text, source):
    report, new = convert_text(HEAD + source)

    assert new == (HEAD + source).lstrip("\n")
    assert "MIG114" in [finding.code for finding in report.findings]
