"""Batches that a generator hands on from a loader: they are not shared out, and the reason says so."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)


def batches(data, size):
    {generator}


data = [dict(x=torch.randn(4), y=torch.randn(1)) for _ in range(16)]
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    given = batches(data, 4)
    for number, batch in enumerate({over}):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch["x"]), batch["y"])
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 6))
"""
HANDED_ON = """\
loader = DataLoader(data, batch_size=size, shuffle=True)
    for batch in loader:
        out = {}
        for name, part in batch.items():
            out[name] = batch[name].float()
        yield out"""
FOLLOWED = """\
loader = DataLoader(data, batch_size=size, shuffle=True)
    for batch in loader:
        yield {name: part for name, part in batch.items()}"""
PICKED = """\
for first in range(0, len(data), size):
        yield {name: torch.stack([row[name] for row in data[first : first + size]]) for name in "xy"}"""
WHY = "batches() goes through a loader and hands its batches on, which are not shared out"


def _told(report):
    told = [finding.message for finding in report.findings if finding.code == "MIG903"]
    return [message.partition(": ")[2] for message in told if "not shared out" in message]


@pytest.mark.parametrize("over", ["given", "batches(data, 4)"])
def test_a_loader_in_a_generator_is_the_reason(convert_text, over):
    report, _ = convert_text(PROGRAM.format(generator=HANDED_ON, over=over))

    assert _told(report) == [WHY]


def test_without_a_loader_there_is_none(convert_text):
    report, _ = convert_text(PROGRAM.format(generator=PICKED, over="given"))

    assert _told(report) == ["the batches come from no DataLoader, so they are not shared out"]


def test_batches_that_can_be_followed_are_shared_out(convert_text):
    report, converted = convert_text(PROGRAM.format(generator=FOLLOWED, over="given"))

    assert _told(report) == []
    assert "loader = accelerator.prepare(loader)" in converted


def test_all_processes_train_as_one_does(convert_text, numbers_printed):
    _, converted = convert_text(PROGRAM.format(generator=HANDED_ON, over="given"))

    assert numbers_printed(converted, 2) == numbers_printed(converted, 1)
