"""Lengths of loaders that an evaluation divides by: `migrate/programs/evaluation/measured.py`."""

import pytest

from migrate.options import Target

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(64, 2), torch.ones(64, 1)), batch_size=8, shuffle=True)
held = DataLoader(TensorDataset(torch.ones(22, 2), torch.ones(22, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)


def evaluate(rows):
    {above}
    {mode}
    total = 0
    with torch.no_grad():
        for x, y in rows:
            {inside}
            output = model(x)
            total += nn.functional.mse_loss(output, y).item()
    print(total / {divisor})


for epoch in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    evaluate(held)
    {also}
"""
EVAL = "model.eval()"


def source(above, mode=EVAL, *, inside="pass", divisor="batches", also=""):
    return PROGRAM.format(above=above, mode=mode, inside=inside, divisor=divisor, also=also)


MOVED = {
    "while it trains": (source("batches = len(rows)"), "batches = len(rows)"),
    "with another": (source("size, batches = len(rows.dataset), len(rows)"), "size, batches = len(rows.dataset), "),
    "computed with": (source("batches = len(rows) * 2"), "batches = len(rows) * 2"),
    "of a loader that is trained on, too": (
        source(EVAL, "batches = len(rows)", also="evaluate(loader)"),
        "batches = len(rows)",
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_it_is_taken_when_the_pass_is_over(convert_text, name):
    before, moved = MOVED[name]
    _, result = convert_text(before)

    assert "accelerator.gather_for_metrics((output, y))" in result
    assert result.count(moved) == 1
    assert result.index("gather_for_metrics") < result.index(moved) < result.index("accelerator.print(total")


STAYING = {
    "while it evaluates": source(EVAL, "batches = len(rows)"),
    "below the loop": source("pass", divisor="len(rows)"),
    "nobody divides by it": source("batches = len(rows)", divisor="6"),
    "how many samples there are": source("batches = len(rows.dataset)"),
}


@pytest.mark.parametrize("name", STAYING)
def test_it_stays_where_it_is_right(convert_text, name):
    _, result = convert_text(STAYING[name])

    assert "accelerator.gather_for_metrics((output, y))" in result
    body = result.partition("def evaluate")[2]
    assert body.find("batches = ") < body.index("for x, y")


NEEDED = {
    "the loop reads it": source("batches = len(rows)", inside="share = 1 / batches"),
    "more is done with it": source("batches = float(len(rows))"),
    "under a condition": source("batches = 0\n    if epoch:\n        batches = len(rows)"),
}


ASKED = "accelerator.steps_per_evaluation(rows)"


@pytest.mark.parametrize("name", NEEDED)
def test_it_is_asked_for_where_it_cannot_wait(convert_text, name):
    _, result = convert_text(NEEDED[name])

    assert "accelerator.gather_for_metrics((output, y))" in result
    assert result.count(ASKED) == 1
    assert "len(rows)" not in result


@pytest.mark.parametrize("also", ["", "evaluate(loader)"])
def test_it_is_asked_for_of_a_loader_that_is_trained_on_as_well(convert_text, also):
    above = "batches = 3 if epoch else min(9, len(rows))"
    _, result = convert_text(source(EVAL, above, inside="if batches > 2:\n                break", also=also))

    assert (ASKED in result) == bool(also)


@pytest.mark.parametrize("name", NEEDED)
def test_every_process_evaluates_in_full_where_nobody_can_be_asked(convert_text, name):
    report, result = convert_text(NEEDED[name], target=Target.ACCELERATE)

    assert "gather_for_metrics" not in result
    assert any("takes the length of a training pass" in finding.message for finding in report.findings)


def test_it_is_refused_where_the_loader_is_trained_on(convert_text):
    before = source(EVAL, "batches = len(rows)", inside="share = 1 / batches", also="evaluate(loader)")
    report, result = convert_text(before, target=Target.ACCELERATE)

    assert "accelerator" not in result
    assert any("takes the length of a training pass" in finding.message for finding in report.findings)
