"""Sums in a dictionary, and lists, that a training loop hands to its steps, or is handed itself."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 2), torch.randn(16, 1))
loader = DataLoader(data, batch_size=BATCH)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)

def step(x, y, stats):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    KEEP
"""
SUMS = "stats['loss'] += loss.item() * len(x)\n    stats['samples'] += len(x)"
MADE = "    stats = {'loss': 0.0, 'samples': 0}\n"
SHOWN = "    print(stats['loss'] / stats['samples'])\n"
EPOCHS = "for epoch in range(2):\n"
STEPS = "    for x, y in loader:\n        CALL\n"

HANDED = {
    "by position": (SUMS, EPOCHS + MADE + STEPS.replace("CALL", "step(x, y, stats)") + SHOWN),
    "by name": (SUMS, EPOCHS + MADE + STEPS.replace("CALL", "step(x, y, stats=stats)") + SHOWN),
    "on to another function": (
        (
            "add(stats, loss.item(), len(x))\n\n"
            "def add(stats, loss, n):\n    stats['loss'] += loss * n\n    stats['samples'] += n"
        ),
        EPOCHS + MADE + STEPS.replace("CALL", "step(x, y, stats)") + SHOWN,
    ),
    "to the function of the loop": (
        SUMS,
        f"def train(stats):\n{STEPS.replace('CALL', 'step(x, y, stats)')}\n{EPOCHS}{MADE}    train(stats)\n{SHOWN}",
    ),
    "a list": (
        "stats.append(loss.item())",
        f"{EPOCHS}    stats = []\n{STEPS.replace('CALL', 'step(x, y, stats)')}    print(sum(stats) / len(stats))\n",
    ),
}
OTHERS = {
    "under another name": EPOCHS
    + MADE.replace("stats", "kept")
    + STEPS.replace("CALL", "step(x, y, kept)")
    + SHOWN.replace("stats", "kept"),
    "that the step sets anew": EPOCHS + MADE + STEPS.replace("CALL", "stats = step(x, y, stats)") + SHOWN,
    "that goes on": MADE.replace("    ", "") + EPOCHS + STEPS.replace("CALL", "step(x, y, stats)") + SHOWN,
    "of two callers": (
        f"def train(stats):\n{STEPS.replace('CALL', 'step(x, y, stats)')}\n"
        f"{EPOCHS}{MADE}    train(stats)\n    train(stats)\n{SHOWN}"
    ),
}


def _text(keep, code, batch=4):
    return HEAD.replace("BATCH", str(batch)).replace("KEEP", keep) + code


@pytest.mark.parametrize("name", HANDED)
def test_what_functions_add_to_what_they_are_handed_is_of_all_processes(convert_text, name):
    report, result = convert_text(_text(*HANDED[name]))

    assert "gather_for_metrics(" in result
    assert not [finding for finding in report.findings if "one process's share" in finding.message]


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_seen_to_be_the_same_is_told(convert_text, name):
    keep = f"stats = dict(stats)\n    {SUMS}\n    return stats" if name == "that the step sets anew" else SUMS
    report, result = convert_text(_text(keep, OTHERS[name]))

    assert "accelerator.prepare(" in result
    assert "gather_for_metrics(" not in result
    assert [finding for finding in report.findings if "['loss'], read after this loop" in finding.message]


@pytest.mark.parametrize("name", ["by position", "to the function of the loop", "a list"])
def test_on_two_processes_they_are_those_of_one(convert_text, numbers_printed, name):
    before, after = (_text(*HANDED[name], batch) for batch in (4, 2))
    _, result = convert_text(after)

    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(before, 1), rel=1e-5)
