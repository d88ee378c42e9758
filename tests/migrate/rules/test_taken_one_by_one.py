"""Batches that objects of the project take one by one: of which loader, for a training and for an evaluation."""

import pytest

from migrate.report.model import Kind

FETCHER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Fetcher:
    def __init__(self, loader):
        self.batches = iter(loader)
        self.load()

    def load(self):
        self.following = next(self.batches, None)

    def next(self):
        batch = self.following
        self.load()
        return batch


def train(batches, model, optimizer):
    model.train()
    batch = batches.next()
    while batch is not None:
        loss = nn.functional.mse_loss(model(batch[0].cuda()), batch[1].cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch = batches.next()


def validate(batches, model):
    model.eval()
    total = 0.0
    with torch.no_grad():
        batch = batches.next()
        while batch is not None:
            total += nn.functional.l1_loss(model(batch[0].cuda()), batch[1].cuda()).item()
            batch = batches.next()
    return total


def main():
    data, held = (TensorDataset(torch.ones(n, 2), torch.ones(n, 1)) for n in (16, 10))
    loader = DataLoader(data, batch_size=4)
    valid = DataLoader(held, batch_size=4)
    model = nn.Linear(2, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        {fetchers}
        train({training}, model, optimizer)
        print(validate({evaluating}, model))


if __name__ == "__main__":
    main()
"""
EACH = {"fetchers": "pass", "training": "Fetcher(loader)", "evaluating": "Fetcher(valid)"}
ITSELF = "self.loader = loader\\n        self.batches = iter(self.loader)"


@pytest.mark.parametrize("kept", ["self.batches = iter(loader)", ITSELF.replace("\\n", "\n")])
def test_a_loader_that_an_object_of_the_evaluation_takes_from_stays_whole(convert_text, kept):
    _, result = convert_text(FETCHER.format(**EACH).replace("self.batches = iter(loader)", kept))
    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in result
    assert "valid = accelerator" not in result
    assert "accelerator.print(validate(" in result


def test_objects_that_are_not_told_apart_are_refused(convert_text):
    fetchers = "both = [Fetcher(each) for each in (loader, valid)]"
    report, _ = convert_text(FETCHER.format(fetchers=fetchers, training="both[0]", evaluating="both[1]"))
    (left,) = report.of(Kind.LEFT)
    assert left.code == "MIG114"
    assert "may be one that is trained on" in left.message


def test_a_step_that_looks_at_a_batch_more_is_a_step(convert_text):
    seen = "seen = model(batches.next()[0].cuda())"
    looks = f"for _ in range(2):\n            with torch.no_grad():\n                {seen}\n"
    step = "        optimizer.zero_grad()\n"
    _, result = convert_text(FETCHER.format(**EACH).replace(step, f"        {looks}{step}"))
    assert "accelerator.backward(loss)" in result


UNPACKED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rows = torch.ones(64, 4)
loader = DataLoader(TensorDataset(rows, rows.sum(1, keepdim=True)), batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = iter(loader)
FIRST
for step in range(20):
    try:
        a, b = next(batches)
    except StopIteration:
        batches = iter(loader)
        a, b = next(batches)
    loss = nn.functional.mse_loss(model(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("first", "stays"), [("", False), ("extra = torch.ones(1)\nprint(model(extra))", True)])
def test_batches_of_a_program_without_a_device_are_where_the_loader_brings_them(convert_text, first, stays):
    report, result = convert_text(UNPACKED.replace("FIRST", first).replace("ones(1)", "ones(2, 4)"))

    assert ("cpu=True" in result) is stays
    assert ("tensors on the CPU meet the model" in str(report.findings)) is stays
