"""Decisions by one process's own numbers: refused where the processes would part ways, converted where they do not."""

import pytest

PLATEAU = {
    "imports": "from torch.optim.lr_scheduler import ReduceLROnPlateau",
    "ready": "schedule = ReduceLROnPlateau(optimizer)",
}
COLLECTED = {"start": "found = []", "step": "found.append(output)"}

LONE = {
    "a schedule by the last loss": ("schedule.step(loss", {**PLATEAU, "epoch": "schedule.step(loss.item())"}),
    "through a variable": ("schedule.step(last", {**PLATEAU, "epoch": "last = loss.item()\nschedule.step(last)"}),
    "stopping early": ("if loss.item()", {"epoch": "if loss.item() < 0.3:\n    break"}),
    "saving the best": (
        "if loss.item()",
        {"made": "best = 9.0", "epoch": 'if loss.item() < best:\n    best = loss.item()\n    torch.save(best, "b.pt")'},
    ),
    "outputs that are collected": ("if sum(", {**COLLECTED, "epoch": "if sum(f.sum() for f in found) > 9:\n    break"}),
    "in a batch": ("if torch.isnan", {"step": "if torch.isnan(loss):\n    break"}),
}


@pytest.mark.parametrize("name", LONE)
def test_refused(refused, name):
    at, holes = LONE[name]
    refused("MIG122", at, **holes)


TRAIN = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(8, 2), torch.randn(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer)
def train():
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader), loss.item()
for epoch in range(2):
"""


@pytest.mark.parametrize("body", ["mean, last = train()\n    schedule.step(last)", "schedule.step(train()[1])"])
def test_a_value_that_a_function_returns(refused_text, body):
    refused_text(f"{TRAIN}    {body}\n", "MIG122", "schedule.step(")


def test_the_joined_part_of_what_a_function_returns(convert_text):
    _, result = convert_text(f"{TRAIN}    mean, last = train()\n    schedule.step(mean)\n    print(last)\n".lstrip())

    assert "total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes" in result


SAME_ON_ALL = {
    "the epoch": {"epoch": "if epoch > 0:\n    break"},
    "how many there are": {**COLLECTED, "epoch": "if len(found) > 3:\n    break"},
    "a name that got another value": {"epoch": "loss = epoch / 2\nif loss > 3:\n    break"},
    "a name that the next loop binds": {"epoch": "for x in range(3):\n    if x > 1:\n        break"},
}


@pytest.mark.parametrize("name", SAME_ON_ALL)
def test_unchanged(unchanged, name):
    unchanged(**SAME_ON_ALL[name])


def test_numbers_that_are_joined(changed):
    changed(
        **PLATEAU,
        start="found = []",
        step="found.append(loss.item())",
        epoch=(
            "schedule.step(sum(found) / len(found))",
            "found = accelerator.gather_for_metrics(found)\nschedule.step(sum(found) / len(found))",
        ),
    )


def test_a_list_over_all_epochs_stays_in_the_order_of_time(remark, convert_text, programs):
    before, _ = programs({"made": "found = []", "step": "found.append(loss.item())", "end": "curve = list(found)"})
    report, result = convert_text(before)

    assert "gather" not in result
    assert any(f.code == "MIG114" and "found" in f.message for f in report.findings)


def test_lists_of_predictions_are_joined(changed):
    changed(
        start="found = []",
        step="found.extend(output.argmax(1).tolist())",
        epoch=("print(len(found))", "found = accelerator.gather_for_metrics(found)\naccelerator.print(len(found))"),
    )
