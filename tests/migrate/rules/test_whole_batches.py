"""Batches that cannot be gathered, of a loader that is trained on: `asked_whole` in `evaluation/exact.py`."""

import pytest

from migrate.options import Target

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset
{imports}


class Rows(Dataset):
    def __len__(self):
        return 22

    def __getitem__(self, index):
        return {item}


loader = {loader}
held = {loader}
model = nn.Linear(2, 2)
optimizer = optim.SGD(model.parameters(), lr=0.1)


def test(rows):
    {mode}
    correct = 0
    for batch in {over}:
        {first}
        output = model(batch["x"])
        correct += (output.argmax(1) == batch["y"]).sum().item()
    return correct / len({length})


for epoch in range(3):
    model.train()
    for batch in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch["x"]), batch["y"]).backward()
        optimizer.step()
    {evaluated}
"""
BOTH = "print(test(loader), test(held))"


def source(
    *,
    item='{"x": torch.ones(2), "y": 1}',
    loader="DataLoader(Rows(), batch_size=4, shuffle=True)",
    mode="model.eval()",
    over="rows",
    first="pass",
    length="rows.dataset",
    evaluated=BOTH,
    imports="",
):
    return PROGRAM.format(
        item=item,
        loader=loader,
        mode=mode,
        over=over,
        first=first,
        length=length,
        evaluated=evaluated,
        imports=imports,
    )


GIVEN = {
    "the loader": (source(), "for batch in accelerator.whole_batches(rows):"),
    "counted": (
        source(over="tqdm(rows)", imports="from tqdm import tqdm"),
        "for batch in tqdm(accelerator.whole_batches(rows), disable=",
    ),
    "put together by the program": (
        source(loader="DataLoader(Rows(), batch_size=4, collate_fn=lambda rows: rows[0])"),
        "for batch in accelerator.whole_batches(rows):",
    ),
    "counted by a bar that is made above": (
        source(mode="model.eval()\n    bar = tqdm(rows)", over="bar", imports="from tqdm import tqdm"),
        "bar = tqdm(accelerator.whole_batches(rows), disable=",
    ),
    "numbered above": (
        source(mode="model.eval()\n    steps = enumerate(tqdm(rows))", over="steps", first="batch = batch[1]").replace(
            "import torch\n", "import torch\nfrom tqdm import tqdm\n", 1
        ),
        "steps = enumerate(tqdm(accelerator.whole_batches(rows), disable=",
    ),
    "put into a list at once": (source(over="list(rows)"), "for batch in list(accelerator.whole_batches(rows)):"),
    "put into a list that is written out": (
        source(over="[*rows]"),
        "for batch in [*accelerator.whole_batches(rows)]:",
    ),
    "divided by the length of the pass": (
        source(length="rows"),
        "for batch in accelerator.whole_batches(rows):",
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_every_process_is_given_all_of_each_batch(convert_text, name):
    before, given = GIVEN[name]
    report, result = convert_text(before)

    assert given in result
    assert result.count("whole_batches") == 1
    assert "gather_for_metrics" not in result
    assert any("every process computes every batch of this evaluation" in each.message for each in report.findings)


def test_only_what_is_trained_on_is_asked_for_whole_batches(convert_text):
    _, result = convert_text(source(evaluated="print(test(held))"))

    assert "loader, model, optimizer = accelerator.prepare(" in result
    assert "whole_batches" not in result


REFUSED = {
    "samples are drawn": source(item='{"x": torch.rand(2), "y": 1}'),
    "dropout goes on": source(mode="pass", first="batch['x'] = nn.functional.dropout(batch['x'])").replace(
        "model = nn.Linear(2, 2)", "model = nn.Sequential(nn.Dropout(), nn.Linear(2, 2))"
    ),
    "the batches lie in a list": source(mode="model.eval()\n    batches = list(rows)", over="batches"),
    "two loops run over something made above": source(
        mode="model.eval()\n    bar = enumerate(rows)\n    for i, batch in bar:\n        break",
        over="(batch for i, batch in bar)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused(convert_text, name):
    report, result = convert_text(REFUSED[name])

    assert "accelerator" not in result
    assert "MIG114" in {finding.code for finding in report.findings}


def test_accelerate_has_no_such_passes(convert_text):
    report, result = convert_text(source(), target=Target.ACCELERATE)

    assert "accelerator" not in result
    assert "MIG114" in {finding.code for finding in report.findings}


SHOWN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 22

    def __getitem__(self, index):
        return {item}, 1


loader = DataLoader(Rows(), batch_size=4, shuffle=True)
held = DataLoader(Rows(), batch_size=4)
shown, labels = next(iter(held))
model = nn.Linear(shown.shape[1], 2)
optimizer = optim.SGD(model.parameters(), lr=0.1)


def test(rows):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in rows:
            output = model(x)
            correct += (output.argmax(1) == y).sum().item()
    return correct / len(rows.dataset)


for epoch in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(test(loader), test(held))
"""


def test_a_loader_of_which_a_batch_is_shown_is_evaluated_in_full_beside_the_one_that_is_trained_on(convert_text):
    report, result = convert_text(SHOWN.format(item="torch.ones(2)"))

    assert "loader, model, optimizer = accelerator.prepare(" in result
    assert "for x, y in accelerator.whole_batches(rows):" in result
    assert any("its loader is also read in other ways" in each.message for each in report.findings)


def test_a_loader_of_which_a_batch_is_shown_is_refused_where_samples_are_drawn(refused_text):
    refused_text(SHOWN.format(item="torch.rand(2)"), "MIG114", "        for x, y in rows:", ["also trained on"])
