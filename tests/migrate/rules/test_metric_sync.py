"""Metrics of torchmetrics: what an evaluation feeds joins nothing by itself."""

import pytest

EVALUATION = """
model.eval()
with torch.no_grad():
    for a, b in held:
        metric.update(model(a), b)
print(metric.compute())
model.train()
"""
MADE = "held = DataLoader(data, batch_size=4)"
CHANGED = {
    "a metric": (
        "metric = torchmetrics.Accuracy(task='binary')",
        "metric = torchmetrics.Accuracy(task='binary', sync_on_compute=False)",
    ),
    "without arguments": (
        "metric = torchmetrics.MeanMetric()",
        "metric = torchmetrics.MeanMetric(sync_on_compute=False)",
    ),
    "the parts of a collection": (
        "part = torchmetrics.MeanMetric()\nmetric = torchmetrics.MetricCollection({'mean': part})",
        "part = torchmetrics.MeanMetric(sync_on_compute=False)\nmetric = torchmetrics.MetricCollection({'mean': part})",
    ),
    "what is said already": ("metric = torchmetrics.MeanMetric(sync_on_compute=True)",) * 2,
}
PROGRAM = """
import torch
import torchmetrics
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
held = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
{made}
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        output = model(x)
        loss = (output - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {training}
    {evaluation}
"""


def program(made, training="", evaluation=EVALUATION):
    return PROGRAM.format(made=made, training=training, evaluation=evaluation.replace("\n", "\n    "))


@pytest.mark.parametrize("name", CHANGED)
def test_what_an_evaluation_feeds_joins_nothing(convert_text, name):
    made, after = CHANGED[name]
    _, result = convert_text(program(made))

    assert f"\n{after}\n" in result


def test_what_training_alone_feeds_goes_on_joining(convert_text):
    made = "metric = torchmetrics.MeanMetric()"
    _, result = convert_text(program(made, "metric.update(loss.detach())", "print(metric.compute())"))

    assert f"\n{made}\n" in result
    assert "accelerator.backward(loss)" in result


def test_one_metric_for_both_is_refused(refused_text):
    made = "metric = torchmetrics.Accuracy()"
    refused_text(program(made, "metric(output, y)"), "MIG124", made, ["training and evaluation feed this metric"])


LATER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

train = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
held = DataLoader(TensorDataset(torch.zeros(8, 2)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for (x,) in train:
        output = model(x)
        loss = output.mean()
        most = output.max().item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    right = 0
    for (x,) in held:
        output = model(x)
        right += (output > 0).sum().item()
    {}
"""


@pytest.mark.parametrize(("end", "is_read"), [("print(right)", False), ("print(right, most)", True)])
def test_names_that_a_later_loop_gives_anew_are_not_read_after_the_first(convert_text, end, is_read):
    report, _ = convert_text(LATER.format(end))
    assert is_read is any("read after this loop" in finding.message for finding in report.findings)


RESET = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
losses = []
for epoch in range(4):
    for (x,) in loader:
        loss = model(x).mean()
        losses.append(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {}
"""


@pytest.mark.parametrize(
    ("end", "is_read"),
    [
        ("if epoch % 2:\n        print(losses)\n        losses = []", True),
        ("with open('log') as log:\n        log.write(str(losses))\n        losses = []", True),
        ("if epoch % 2:\n        losses = []\n        print(losses)", False),
        ("if epoch % 2:\n        losses = []\n    else:\n        print(losses)", True),
    ],
)
def test_what_is_given_anew_after_it_was_read_is_read(convert_text, end, is_read):
    report, _ = convert_text(RESET.format(end))
    assert is_read is any("losses, read after this loop" in finding.message for finding in report.findings)
