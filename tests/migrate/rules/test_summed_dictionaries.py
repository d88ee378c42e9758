"""Dictionaries of sums under keys that are not written out are joined where every process has the same keys."""

import pytest

from migrate.options import Target

PROGRAM = """\
from collections import Counter, defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
loader = DataLoader(rows, batch_size=4)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criteria = {{"mse": nn.MSELoss(), "l1": nn.L1Loss()}}


def compute(output, y):
    found = {{}}
    found["mse"] = criteria["mse"](output, y)
    found["l1"] = criteria["l1"](output, y)
    return found


for epoch in range(2):
    {begin}
    steps, seen = 0, 0
    for x, y in loader:
        output = model(x)
        losses = {{"mse": criteria["mse"](output, y), "l1": criteria["l1"](output, y)}}
        loss = losses["mse"] + losses["l1"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        seen += len(x)
{added}
{shown}
"""


def program(begin="sums = defaultdict(float)", added="for k, v in losses.items(): sums[k] += v.item()", shown=""):
    shown = shown or "print({k: v / len(loader) for k, v in sums.items()})"
    deep = [" " * 8 + line for line in added.splitlines()]
    return PROGRAM.format(begin=begin, added="\n".join(deep), shown=" " * 4 + shown)


MEAN = 'sums = accelerator.reduce(sums, reduction="mean")'
SUM = "sums = accelerator.reduce(sums)"
JOINED = {
    "by the length of the loader": ({}, MEAN),
    "by the steps": ({"shown": "print({k: v / steps for k, v in sums.items()})"}, MEAN),
    "by all rows": (
        {"added": "for k in losses: sums[k] += losses[k].item() * len(x)", "shown": "print(sums['l1'] / len(rows))"},
        SUM,
    ),
    "by the rows that were seen": (
        {
            "begin": "sums = {k: 0.0 for k in criteria}",
            "added": "for k, v in losses.items():\n    sums[k] = sums[k] + v.item() * len(x)",
            "shown": "print([v / seen for v in sums.values()])",
        },
        SUM,
    ),
    "by counts beside": (
        {
            "begin": "sums, counts = defaultdict(float), Counter()",
            "added": "for k, v in losses.items():\n    sums[k] += v.item()\n    counts[k] += 1",
            "shown": "print({name: sums[name] / counts[name] for name in sums})",
        },
        MEAN,
    ),
    "of a function": (
        {
            "begin": "sums = {}",
            "added": "for k, v in compute(output, y).items():\n    sums[k] = sums.get(k, 0) + v.item()",
        },
        MEAN,
    ),
    "first with a test": (
        {
            "begin": "sums = dict()",
            "added": "for k in criteria:\n    if k not in sums:\n        sums[k] = 0\n    sums[k] += losses[k].item()",
        },
        MEAN,
    ),
    "with what is written out": (
        {
            "begin": "sums = dict.fromkeys(criteria, 0)",
            "added": "for k, v in losses.items(): sums[k] += v.item()\nsums['all'] += loss.item()",
        },
        MEAN,
    ),
    "beside its own keys": (
        {
            "begin": "sums = {'mse': 0.0, 'l1': 0.0}",
            "added": "for k, v in zip(sums, (losses['mse'], losses['l1'])): sums[k] += v.item()",
        },
        MEAN,
    ),
    "beside keys that are written out": (
        {"added": "for k, v in (('mse', losses['mse']), ('all', loss)): sums[k] += v.item()"},
        MEAN,
    ),
    "of tensors": (
        {"begin": "sums = {'mse': 0, 'l1': 0}", "added": "for k, v in losses.items(): sums[f'{k}'] += v.detach()"},
        MEAN,
    ),
}


@pytest.mark.parametrize("name", JOINED)
def test_the_shares_of_its_items_are_joined(convert_text, name):
    holes, line = JOINED[name]

    report, after = convert_text(program(**holes))

    assert not any("while this loop runs" in each.message for each in report.findings)
    assert f"\n    {line}\n    " in after
    assert after.count("sums = accelerator.") == 1


LEFT = {
    "a batch says how many": {"added": "for k, v in zip(criteria, output[0]): sums[k] += v.item()"},
    "a batch says which of some": {"added": "for k, v in ((int(y[0]), loss), (1, loss)): sums[k] += v.item()"},
    "a batch says which": {"added": "for k, v in zip(y.tolist(), output): sums[k[0]] += v.item()"},
    "a batch counts which": {"added": "for k, v in Counter(y[:, 0].tolist()).items(): sums[k] += v * loss.item()"},
    "a batch says whether": {"added": "for k, v in losses.items():\n    if v < 1:\n        sums[k] += v.item()"},
    "more than zeros": {"begin": "sums = {'epoch': epoch, 'mse': 0, 'l1': 0}"},
    "more than sums": {"added": "for k, v in losses.items():\n    sums[k] += v.item()\n    sums['last'] = loss.item()"},
    "handed on": {"added": "for k, v in losses.items():\n    sums[k] += v.item()\ncompute(sums, y)"},
    "counts of its own": {
        "begin": "sums, counts = defaultdict(float), Counter()",
        "added": "for k, v in losses.items(): sums[k] += v.item()\nfor k in y[:, 0].tolist(): counts[k] += 1",
        "shown": "print({k: sums[k] / counts[k] for k in sums})",
    },
}


@pytest.mark.parametrize("name", LEFT)
def test_what_may_not_be_the_same_on_every_process_is_told(convert_text, name):
    report, after = convert_text(program(**LEFT[name]))

    assert "sums = accelerator." not in after
    assert any("sums, read after this loop" in each.message for each in report.findings)


def test_what_is_added_to_one_of_its_keys_is_joined_with_the_others(convert_text, numbers_printed):
    every = "for k, v in losses.items(): sums[k] += v.item() * len(x)"
    source = program(
        begin="sums = {'mse': 0.0, 'l1': 0.0, 'all': 0.0}",
        added=f"{every}\nsums['all'] += loss.item() * len(x)",
        shown="print(*(value / seen for value in sums.values()))",
    ).replace("rows = ", "torch.manual_seed(0)\nrows = ")
    report, after = convert_text(source)

    assert "    sums = accelerator.reduce(sums)\n" in after
    assert not [each for each in report.findings if "read after this loop" in each.message]
    shared = after.replace("= Accelerator(", "= Accelerator(split_batches=True, ")
    assert numbers_printed(shared, 2) == pytest.approx(numbers_printed(source, 1), rel=1e-5)


def test_an_attribute_is_joined_and_one_that_other_code_changes_is_not(convert_text):
    source = program(
        begin="log.sums = {}", added="for k, v in losses.items(): log.sums[k] = log.sums.get(k, 0) + v.item()"
    )
    source = source.replace("in sums.items", "in log.sums.items").replace(
        "for epoch", "class Log:\n    sums = {}\n\n\nlog = Log()\nfor epoch"
    )

    assert 'log.sums = accelerator.reduce(log.sums, reduction="mean")' in convert_text(source)[1]
    assert "accelerator.reduce" not in convert_text(source + "    log.sums['epoch'] = epoch\n")[1]


def test_for_accelerate_item_by_item(convert_text):
    _, after = convert_text(program(), target=Target.ACCELERATE)

    line = "sums[name] = sum(accelerator.gather_for_metrics([sums[name]])) / accelerator.num_processes"
    assert f"\n    for name in sums:\n        {line}\n    " in after
