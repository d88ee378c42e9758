"""What waits for the last batch of an epoch: `migrate/programs/schedule/epoch_ends.py`."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(16, 2), torch.randn(16, 1))
loader = DataLoader(data, batch_size=4)
BEFORE
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
count = 0
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        count += 1
        if TEST:
            BODY
print(optimizer.param_groups[0]["lr"])
"""
AT_THE_END = {
    "the last one": "i == len(loader) - 1",
    "the length on the left": "len(loader) == i + 1",
    "from there on": "i + 1 >= len(loader)",
    "of all that were counted": "count % len(loader) == 0",
    "no rest": "not count % len(loader)",
    "beside another test": "epoch < 5 and i == len(loader) - 1",
}
EACH_TIME = ["i < len(loader)", "i != len(loader)", "loss.item() > len(loader) - 5", "epoch < 5"]


def _text(test, body="scheduler.step()", before=""):
    return PROGRAM.replace("TEST", test).replace("BODY", body).replace("BEFORE", before)


def _told(report):
    return [finding for finding in report.findings if "waits for a batch by" in finding.message]


@pytest.mark.parametrize("name", AT_THE_END)
def test_a_scheduler_that_steps_there_is_stepped_per_epoch(convert_text, name):
    report, result = convert_text(_text(AT_THE_END[name]))

    assert "loader, model, optimizer = accelerator.prepare(" in result
    assert not _told(report)


@pytest.mark.parametrize("test", EACH_TIME)
def test_one_that_steps_for_each_batch_is_prepared(convert_text, test):
    _, result = convert_text(_text(test))

    assert "loader, model, optimizer, scheduler = accelerator.prepare(" in result


@pytest.mark.parametrize("name", ["the last one", "of all that were counted"])
def test_two_processes_have_the_rate_of_one(convert_text, numbers_printed, name):
    _, result = convert_text(_text(AT_THE_END[name]))

    assert numbers_printed(_text(AT_THE_END[name]), 1) == numbers_printed(result, 2) == [0.025]


@pytest.mark.parametrize("before", ["steps = len(loader)", "steps = len(data) // 4"])
def test_one_that_waits_for_a_batch_that_does_not_come_is_refused(refused_text, before):
    refused_text(
        _text("i == steps - 1", before=before),
        code="MIG118",
        at="scheduler.step()",
        mentions=["N times as late, or never"],
    )


def test_one_that_steps_per_batch_as_well_is_refused(refused_text):
    code = _text("i == len(loader) - 1").replace("        count += 1\n", "        scheduler.step()\n")

    refused_text(code, code="MIG118", at="            scheduler.step()", mentions=["is stepped per epoch here"])


OPTIONS = """
import argparse

def read(parser):
    parser.add_argument("--kind", default="sum")
    parser.add_argument("--every", type=int, default=-1)
    args = parser.parse_args()
    args.samples = len(data)
    args.name = args.kind + str(args.samples)
    return args

args = read(argparse.ArgumentParser())
"""


@pytest.mark.parametrize(
    ("test", "before", "is_told"),
    [
        ("i == steps - 1", "steps = len(loader)", True),
        ("count % (len(data) // 4) == 0", "", True),
        ("(i + 1) * 4 >= len(loader.dataset)", "", True),
        ("i == loader.dataset.__len__() // 4 - 1", "", True),
        ("i == loader.__len__() - 1", "", False),
        ("i == len(loader) - 1", "", False),
        ("i < len(data) // 4", "", False),
        ("i % 2 == 0", "", False),
        ("loss.item() > len(data)", "", False),
        ("args.kind == 'sum'", OPTIONS, False),
        ("args.name == 'sum16'", OPTIONS, False),
        ("args.every == -1", OPTIONS, False),
        ("count % args.every == 0", OPTIONS, False),
        ("count == args.samples // 4", OPTIONS, True),
    ],
)
def test_what_else_waits_for_such_a_batch_is_told(convert_text, test, before, is_told):
    report, result = convert_text(_text(test, "print(epoch)", before))

    assert "accelerator.prepare(" in result
    assert len(_told(report)) == is_told
