"""Numbers that a loop over one batch adds up: they are of that batch, and not of what all processes have seen."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    {epoch}
    for {target}:
        {step}
        for turn in range(3):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss{item}
        {shown}
    print(total)
"""
TARGETS = ["x, y in loader", "i, (x, y) in enumerate(loader)"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("item", ["", ".item()"])
def test_a_number_of_a_batch_is_not_added_up_over_the_processes(convert_text, target, item):
    source = SOURCE.replace("    print(total)\n", "")
    shown = "print(float(total / 3))"
    report, result = convert_text(source.format(epoch="", target=target, step="total = 0.0", item=item, shown=shown))

    assert "gather" not in result
    assert "reduce" not in result
    assert any(note.message.startswith("total, read after this loop") for note in report.of(Kind.NOTE))


@pytest.mark.parametrize("target", TARGETS)
def test_one_that_goes_on_over_all_batches_is(convert_text, target):
    _, result = convert_text(SOURCE.format(epoch="total = 0.0", target=target, step="", item=".item()", shown=""))

    assert "    total = sum(accelerator.gather_for_metrics([total]))\n" in result


IN_A_FUNCTION = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)


def update(x, y):
    total, losses = 0.0, []
    for start in range(0, len(x), 2):
        loss = nn.functional.mse_loss(model(x[start : start + 2]), y[start : start + 2]) / 2
        loss.backward()
        total += loss.item()
        losses.append(loss.item())
    optimizer.step()
    optimizer.zero_grad()
    return total, sum(losses)


for x, y in loader:
    print(update(x, y))
"""


def test_nor_is_one_of_a_function_that_is_given_a_batch(convert_text):
    report, result = convert_text(IN_A_FUNCTION)

    assert report.changes
    assert "gather" not in result
    notes = [note.message for note in report.of(Kind.NOTE)]
    assert any(note.startswith("total, read after this loop") for note in notes)


IN_PARTS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
total, seen, part = 0.0, 0, 0.0
for x, y in loader:
    optimizer.zero_grad()
    output = model(x)
    {begins}
    {adds}
    loss.backward()
    optimizer.step()
    total += {part} * x.size(0)
    seen += x.size(0)
print(total / seen)
"""
PENALTY = "nn.functional.l1_loss(output, y)"
PARTS = {
    "added to it": ("loss = nn.functional.mse_loss(output, y)", f"loss = loss + 0.1 * {PENALTY}"),
    "at times": ("loss = nn.functional.mse_loss(output, y)", f"if len(loader) > 1: loss = loss + 0.1 * {PENALTY}"),
    "in place": ("loss = nn.functional.mse_loss(output, y)", f"loss += {PENALTY}"),
    "one by one": ("loss = 0", f"for weight in (0.1, 0.2): loss += weight * {PENALTY}"),
}


@pytest.mark.parametrize(("begins", "adds"), PARTS.values(), ids=PARTS)
def test_a_loss_of_several_parts_is_joined_as_what_divides_it_is(convert_text, begins, adds):
    report, result = convert_text(IN_PARTS.format(begins=begins, adds=adds, part="loss.item()"))

    assert "seen = sum(accelerator.gather_for_metrics([seen]))\n" in result
    assert "total = sum(accelerator.gather_for_metrics([total]))\n" in result
    assert not any("one process's share" in note.message for note in report.of(Kind.NOTE))


def test_what_is_multiplied_by_a_sum_of_the_steps_before_does_not_add_up(convert_text):
    begins, adds = "loss = nn.functional.mse_loss(output, y)", "part = part + loss.item()"
    report, result = convert_text(IN_PARTS.format(begins=begins, adds=adds, part="part"))

    assert "total = sum(" not in result
    assert any(note.message.startswith("total, read after this loop") for note in report.of(Kind.NOTE))
