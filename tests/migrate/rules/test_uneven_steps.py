"""Loops in a step that take as many steps as the process's own batch says."""

import pytest

STEPS = "for part in {}:\n    model(part).mean().backward()"
COUNTED = "for start in range(0, {}, 2):\n    model(x[start : start + 2]).mean().backward()"
GROUPED = "for row, label in zip(x, y):\n    {}\n"
PICKED = "rows = []\nfor row in x:\n    {}\n"
UNEVEN = {
    "rows that are chosen": STEPS.format("x[y[:, 0] > 0]"),
    "rows of a mask with a name": f"mask = y[:, 0] > 0\n{STEPS.format('x[mask]')}",
    "rows of two masks": STEPS.format("x[(y[:, 0] > 0).logical_and(y[:, 0] < 1)]"),
    "rows that are not a mask": f"mask = y[:, 0] > 0\n{STEPS.format('x[~mask]')}",
    "rows of a comprehension": f"rows = [row for row in x if row.sum() > 0]\n{STEPS.format('rows')}",
    "rows that are put into a list": PICKED.format("if row.sum() > 0:\n        rows.append(row)")
    + STEPS.format("rows"),
    "labels": "for label in y.unique():\n    model(x * label).mean().backward()",
    "labels as numbers": "for label in torch.unique(y).tolist():\n    model(x * label).mean().backward()",
    "a set of them": "for label in set(y.tolist()):\n    model(x * label).mean().backward()",
    "counted": "for i, label in enumerate(y.unique()):\n    model(x * label).mean().backward()",
    "items by label": f"parts = {{label: x for label in y}}\n{STEPS.format('parts.values()')}",
    "counted by a length": f"rows = [row for row in x if row.sum() > 0]\n{COUNTED.format('len(rows)')}",
    "counted by half of it": f"rows = x[y[:, 0] > 0]\n{COUNTED.format('len(rows) // 2')}",
    "groups": f"groups = defaultdict(list)\n{GROUPED.format('groups[label.item()].append(row)')}"
    "for rows in groups.values():\n    model(rows[0]).mean().backward()",
    "groups that are made where they are missing": "groups = {}\n"
    + GROUPED.format("groups.setdefault(label.item(), []).append(row)")
    + "for rows in groups.values():\n    model(rows[0]).mean().backward()",
    "what is chosen of all groups": "groups = defaultdict(list)\n"
    + GROUPED.format("if row.sum() > 0:\n        groups[label.item()].append(row)")
    + "rows = []\nfor group in groups.values():\n    for row in group:\n        rows.append(row)\n"
    + STEPS.format("rows"),
    "what is made of rows that are chosen": "rows = []\nfor row in x[y[:, 0] > 0]:\n    rows.append(row)\n"
    + STEPS.format("rows"),
    "in a comprehension": "[model(row).mean().backward() for row in x[y[:, 0] > 0]]",
}


@pytest.mark.parametrize("name", UNEVEN)
def test_as_many_steps_as_a_batch_says(refused, name):
    at = next(line for line in reversed(UNEVEN[name].splitlines()) if "for " in line)
    imports = "from collections import defaultdict"
    finding = refused("MIG122", at, ["each process takes as many steps here as"], imports=imports, batch=UNEVEN[name])

    assert "after it" in finding.hint


EVEN = {
    "rows": STEPS.format("x"),
    "parts": STEPS.format("x.chunk(2)"),
    "pairs": "for a, b in zip(x, y):\n    (model(a) - b).mean().backward()",
    "all that are put into a list": PICKED.format("rows.append(row)") + STEPS.format("rows"),
    "a part of them": COUNTED.format("len(x) // 2"),
    "groups that are there": "groups = [[], []]\n"
    + GROUPED.format("groups[int(label.item())].append(row)")
    + "for rows in groups:\n    model(torch.stack(rows or [x[0]])).mean().backward()",
    "all members of groups": "groups = {}\n"
    + GROUPED.format("groups.setdefault(label.item(), []).append(row)")
    + "rows = []\nfor group in groups.values():\n    for row in group:\n        rows.append(row)\n"
    + STEPS.format("rows"),
    "rows by their numbers": STEPS.format("x[:2]"),
}


@pytest.mark.parametrize("name", EVEN)
def test_as_many_steps_as_a_batch_is_large(convert_text, programs, name):
    before, _ = programs({"batch": EVEN[name]})
    report, result = convert_text(before)

    assert report.changes
    assert "gather" not in result


def test_as_many_steps_as_a_function_is_given_rows(refused):
    steps = "def update(rows):\n    " + COUNTED.format("len(rows)").replace("\n", "\n    ")
    chosen = "def chosen(rows):\n    return [row for row in rows if row.sum() > 0]"

    refused("MIG122", "for start", ["`range(0, len(rows), 2)`"], ready=f"{chosen}\n{steps}", batch="update(chosen(x))")


ROLLED = """
class Episode:
    def __init__(self, number, length):
        self.number, self.done = number, length > 2


def rollout(batch):
    lengths = torch.zeros(len(batch))
    for number in range(len(batch)):
        lengths[number] = batch[number].sum()
    return [Episode(number, length) for number, length in enumerate(lengths.tolist())]
"""
CHOSEN = {
    "in a comprehension": "episodes = [each for each in episodes if each.done]",
    "in a loop": "kept = []\nfor each in episodes:\n    if each.done:\n        kept.append(each)\nepisodes = kept",
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_a_function_makes_of_a_batch_and_only_some_of_it_is_kept(refused, name):
    step = "for each in episodes:\n    model(x[each.number]).mean().backward()"

    refused("MIG122", "for each", batch=f"episodes = rollout(x)\n{CHOSEN[name]}\n{step}", ready=ROLLED)


def test_all_that_a_function_makes_of_a_batch(convert_text, programs):
    step = "for each in episodes:\n    model(x[each.number]).mean().backward()"
    before, _ = programs({"batch": f"episodes = rollout(x)\n{step}", "ready": ROLLED})

    assert convert_text(before)[0].changes


def test_losses_that_are_added_up(unchanged):
    unchanged(batch="more = 0\nfor row in x[y[:, 0] > 0]:\n    more = more + row.mean()")


TAKING = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.rand(32, 2), torch.rand(32, 1)), batch_size=4, shuffle=True)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for step in range(9):
    {take}
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
NEXT = "while True:\n        x, y = next(iter(loader))\n        "
TAKEN = {
    "go on": NEXT + "if (y > 0.5).sum() < 2:\n            continue\n        break",
    "stop": NEXT + "if len(torch.unique(y)) > 3:\n            break",
    "at the top": "x, y = next(iter(loader))\n    while y.max() < 0.5:\n        x, y = next(iter(loader))",
}
TAKEN_ALIKE = {
    "once": "x, y = next(iter(loader))",
    "until it is whole": NEXT + "if x.size(0) == 4:\n            break",
}


@pytest.mark.parametrize("name", TAKEN)
def test_batches_that_are_taken_until_one_is_as_it_should_be(convert_text, name):
    report, _ = convert_text(TAKING.format(take=TAKEN[name]))

    assert not report.changes
    assert ["each process takes batches here" in f.message for f in report.findings if f.code == "MIG122"] == [True]


@pytest.mark.parametrize("name", TAKEN_ALIKE)
def test_batches_that_all_take_alike(convert_text, name):
    assert convert_text(TAKING.format(take=TAKEN_ALIKE[name]))[0].changes
