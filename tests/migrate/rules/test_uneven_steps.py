"""Loops in a step that take as many steps as the process's own batch says."""

import pytest

STEPS = "for part in {}:\n    model(part).mean().backward()"
PICKED = "rows = []\nfor row in x:\n    {}\n"
UNEVEN = {
    "rows that are chosen": STEPS.format("x[y[:, 0] > 0]"),
    "rows of a mask with a name": f"mask = y[:, 0] > 0\n{STEPS.format('x[mask]')}",
    "rows that are not a mask": f"mask = y[:, 0] > 0\n{STEPS.format('x[~mask]')}",
    "rows of a comprehension": f"rows = [row for row in x if row.sum() > 0]\n{STEPS.format('rows')}",
    "rows that are put into a list": PICKED.format("if row.sum() > 0:\n        rows.append(row)")
    + STEPS.format("rows"),
    "labels": "for label in y.unique():\n    model(x * label).mean().backward()",
    "labels as numbers": "for label in torch.unique(y).tolist():\n    model(x * label).mean().backward()",
    "a set of them": "for label in set(y.tolist()):\n    model(x * label).mean().backward()",
    "counted": "for i, label in enumerate(y.unique()):\n    model(x * label).mean().backward()",
    "items by label": f"parts = {{label: x for label in y}}\n{STEPS.format('parts.values()')}",
    "in a comprehension": "[model(row).mean().backward() for row in x[y[:, 0] > 0]]",
}


@pytest.mark.parametrize("name", UNEVEN)
def test_as_many_steps_as_a_batch_says(refused, name):
    at = next(line for line in reversed(UNEVEN[name].splitlines()) if "for " in line)
    finding = refused("MIG122", at, ["each process takes as many steps here as"], batch=UNEVEN[name])

    assert "after it" in finding.hint


EVEN = {
    "rows": STEPS.format("x"),
    "parts": STEPS.format("x.chunk(2)"),
    "pairs": "for a, b in zip(x, y):\n    (model(a) - b).mean().backward()",
    "all that are put into a list": PICKED.format("rows.append(row)") + STEPS.format("rows"),
    "rows by their numbers": STEPS.format("x[:2]"),
}


@pytest.mark.parametrize("name", EVEN)
def test_as_many_steps_as_a_batch_is_large(convert_text, programs, name):
    before, _ = programs({"batch": EVEN[name]})
    report, result = convert_text(before)

    assert report.changes
    assert "gather" not in result


def test_losses_that_are_added_up(unchanged):
    unchanged(batch="more = 0\nfor row in x[y[:, 0] > 0]:\n    more = more + row.mean()")
