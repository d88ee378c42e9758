"""What a decorator of the project puts around a function is entered with it, and may write."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import functools
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def logged(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        BEFORE
        result = function(*args, **kwargs)
        AFTER
        return result

    return inner


@logged
def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer)


if __name__ == "__main__":
    main()
"""
FIRST = '        if os.environ.get("RANK", "0") == "0":\n            '


@pytest.fixture
def around(convert_text):
    def convert(before, after="pass"):
        return convert_text(PROGRAM.replace("BEFORE", before).replace("AFTER", after))

    return convert


def test_what_it_prints_is_said_by_one_process(around):
    _, result = around('print("begin")', 'print("end", result)')

    assert f'{FIRST}print("begin")\n        result = function(*args, **kwargs)\n' in result
    assert f'{FIRST}print("end", result)\n        return result\n' in result


@pytest.mark.parametrize("written", ["open('times.txt', 'a').write('done')", "torch.save(result, 'result.pt')"])
def test_what_it_writes_is_told(around, written):
    report, _ = around("pass", written)

    assert "every process prints or writes what inner() does" in [note.message for note in report.of(Kind.NOTE)]


def test_one_that_says_nothing_stays_as_it_is(around):
    report, result = around("count = len(args)", "count += 1")

    assert "RANK" not in result
    assert not [note for note in report.of(Kind.NOTE) if note.code == "MIG117"]
