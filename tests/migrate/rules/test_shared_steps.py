"""One function for a batch, which a training and an evaluation call: only some of the calls come to its backward."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def step(model, x, y, optimizer=None, train=False, split="test"):
    loss = (model(x) - y).pow(2).mean()
    {test}
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def fit(model, loader, others, optimizer):
    for epoch in range(2):
        model.train()
        for x, y in loader:
            step(model, x, y, {given})
        model.eval()
        with torch.no_grad():
            total = 0
            for x, y in others:
                total += step(model, x, y{passed})
        print(epoch, total / len(others))


def main():
    {seed}
    rows = TensorDataset(torch.arange(48.0).reshape(24, 2) / 48, torch.ones(24, 1))
    loader, others = DataLoader(rows, batch_size={batch}, shuffle=True), DataLoader(rows, batch_size=6)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    fit(model, loader, others, optimizer)


main()
"""
WAYS = {
    "an optimizer": {"test": "if optimizer is not None:", "given": "optimizer"},
    "its truth": {"test": "if optimizer:", "given": "optimizer"},
    "no optimizer": {"test": "if not optimizer:\n        pass\n    else:", "given": "optimizer", "passed": ", None"},
    "a return": {"test": "if optimizer is None:\n        return loss.item()\n    if True:", "given": "optimizer"},
    "a flag": {"test": "if train:", "given": "optimizer, True"},
    "a flag by its name": {"test": "if train and optimizer:", "given": "optimizer, True", "passed": ", train=False"},
    "a text": {"test": 'if split == "train":', "given": 'optimizer, split="train"'},
}


def program(batch=4, seed="torch.manual_seed(0)", **parts):
    return PROGRAM.format(**{"passed": "", "batch": batch, "seed": seed, **parts})


@pytest.mark.parametrize("name", WAYS)
def test_the_evaluation_is_none_of_the_training_loops(convert_text, name):
    report, result = convert_text(program(**WAYS[name]))

    (loop,) = report.of(Kind.LOOP)
    assert loop.converts
    assert "loader, model, optimizer = accelerator.prepare(" in result
    assert any("every process runs this evaluation in full" in note.message for note in report.of(Kind.NOTE))


def test_it_computes_the_same(convert_text, numbers_printed):
    made = {batch: convert_text(program(batch, **WAYS["an optimizer"]))[1] for batch in (4, 2)}

    alone, together = numbers_printed(made[4], 1), numbers_printed(made[2], 2)
    assert together == pytest.approx(alone, rel=1e-5)


CHANGED = {
    "a flag that is set inside": {"test": "train = len(x) > 1\n    if train:", "given": "optimizer"},
    "a flag that is not known": {"test": "if train:", "given": "optimizer, True", "passed": ", None, len(others) > 9"},
}


@pytest.mark.parametrize("name", CHANGED)
def test_what_may_train_is_a_training(convert_text, name):
    report, _ = convert_text(program(**CHANGED[name]))

    assert len(report.of(Kind.LOOP)) == 2


HANDED = """
from functools import partial
from multiprocessing.pool import ThreadPool

import torch
from torch import nn

model = nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(rows, given=None):
    loss = model(rows.cuda()).pow(2).mean()
    if given is not None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


pool = ThreadPool(1)
for rows in torch.ones(4, 8, 2):
    {calls}
"""


@pytest.mark.parametrize("calls", ["pool.starmap(step, [(rows, 1)])", "pool.apply(step, (rows, 1))", "step(rows, 1)"])
def test_what_a_library_passes_is_not_known(convert_text, calls):
    report, _ = convert_text(HANDED.format(calls=calls))

    assert len(report.of(Kind.LOOP)) == 1


def test_whether_there_is_an_optimizer_is_the_same_on_all(convert_text):
    """Nothing is seeded: the weights differ before prepare, and whether there is an optimizer does not."""
    report, _ = convert_text(program(seed="pass", **WAYS["an optimizer"]))

    assert not report.of(Kind.LEFT)


KEPT = """
import time

import torch
from torch import nn, optim

model = nn.Linear(2, 1).cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
kept = {start}
for step in range(8):
    if {decides}:
        kept = model
    if kept is None:
        loss = model(torch.ones(4, 2).cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_something_that_is_kept_by_all_alike(convert_text):
    report, _ = convert_text(KEPT.format(start="None", decides="step == 4"))

    assert not report.of(Kind.LEFT)


def test_something_that_one_process_may_keep(refused_text):
    refused_text(KEPT.format(start="None", decides="time.time() % 2 < 1"), "MIG122", "if kept is None:", ())
