"""A count of a training loop stays with what is divided by it: `migrate/programs/shares/joinable.py`."""

import pytest

PROGRAM = """
from collections import defaultdict

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def compute(output, y, kept):
    loss = (output - y).pow(2).mean()
    {fill}
    return loss


def tell(totals, count):
    print({{name: total / count for name, total in totals.items()}})


def hand_on(totals, count):
    tell(count=count, totals=totals)


def run(loader, model, optimizer):
    totals = defaultdict(float)
    seen = 0
    loss_sum = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        output = model(x)
        loss = compute(output, y, totals)
        loss.backward()
        optimizer.step()
        seen += len(y)
        loss_sum += loss.item() * len(y)
        {step}
    {after}


loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
run(loader, model, optimizer)
"""

FILLED = {
    "by the function that is handed it": {"fill": "kept['loss'] += loss.item() * len(y)"},
    "by one that is handed it in turn": {"fill": "add(kept, loss, y)"},
    "in the loop": {
        "step": "parts = {'loss': loss}\n        for name in parts:\n            totals[name] += parts[name].item()"
    },
}
ADD = "def add(kept, loss, y):\n    kept['loss'] += loss.item() * len(y)\n\n\ndef compute("
DIVIDED = {
    "an item": "print(totals['loss'] / seen)",
    "each": "print({name: total / seen for name, total in totals.items()})",
    "in place": "totals['loss'] /= seen\n    print(totals['loss'])",
    "by another name": "count = float(seen)\n    print(totals['loss'] / count)",
    "in a function": "tell(totals, seen)",
    "deeper": "hand_on(totals, seen)",
}
COUNT = "seen = sum(accelerator.gather_for_metrics([seen]))"
SUM = "loss_sum = sum(accelerator.gather_for_metrics([loss_sum]))"


def program(after, fill="pass", step="pass"):
    text = PROGRAM.format(fill=fill, step=step, after=after)
    return text.replace("def compute(", ADD) if "add(kept" in fill else text


def told(report):
    return {
        finding.message.partition(",")[0] for finding in report.findings if "read after this loop" in finding.message
    }


@pytest.mark.parametrize("filled", FILLED)
def test_a_count_is_not_joined_without_what_it_divides(convert_text, filled):
    report, result = convert_text(program(DIVIDED["each"], **FILLED[filled]))

    assert "accelerator.prepare(" in result
    assert COUNT not in result
    assert "seen" in told(report)


@pytest.mark.parametrize("divided", DIVIDED)
def test_wherever_it_divides(convert_text, divided):
    report, result = convert_text(program(DIVIDED[divided], **FILLED["by the function that is handed it"]))

    assert COUNT not in result
    assert told(report) == {"totals['loss']", "seen"}


def test_another_sum_that_is_divided_by_it_stays_too(convert_text):
    after = f"print(loss_sum / seen)\n    {DIVIDED['in a function']}"
    report, result = convert_text(program(after, **FILLED["in the loop"]))

    assert SUM not in result
    assert {"seen", "loss_sum"} <= told(report)


@pytest.mark.parametrize(
    ("after", "holes"),
    [
        ("print(totals, seen)", FILLED["in the loop"]),
        ("print(sum(totals.values()), loss_sum / seen)", FILLED["in the loop"]),
        (DIVIDED["an item"], {"step": "totals['loss'] += loss.item() * len(y)"}),
        (DIVIDED["in a function"], {"step": "totals['loss'] += loss.item() * len(y)"}),
        ("tell({'loss': loss_sum}, seen)", FILLED["in the loop"]),
    ],
)
def test_what_divides_nothing_of_it_is_joined(convert_text, after, holes):
    _, result = convert_text(program(after, **holes))

    assert COUNT in result
