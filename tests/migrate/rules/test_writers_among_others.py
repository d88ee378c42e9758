"""Writers in a list with objects that write nothing: what is asked of each is left to the main process, or for all."""

import pytest

SOURCE = """
import csv
import logging

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Log:
    def __init__(self, logger):
        self.logger = logger
        self.seen = []

    def update(self, step, loss):
        {does}


class Board:
    def __init__(self, path):
        self.writer = csv.writer(open(path, "w"))

    def update(self, step, loss):
        self.writer.writerow([step, loss])


def train(loader, monitors):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 2 == 0:
            for monitor in monitors:
                monitor.update(step, loss.item())


def main():
    torch.manual_seed(0)
    logging.basicConfig(level=logging.INFO)
    loader = DataLoader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), batch_size=4)
    log = Log(logging.getLogger())
    board = Board("steps.csv")
    train(loader, [log, board])
    print(len(log.seen))


main()
"""


@pytest.mark.parametrize("does", ['self.logger.info("%d %f", step, loss)', "print(step, loss)", "pass"])
def test_the_others_do_without_all_of_them(convert_text, does):
    _, result = convert_text(SOURCE.format(does=does))
    assert 'board = Board("steps.csv") if accelerator.is_main_process else None' in result
    assert "if step % 2 == 0 and accelerator.is_main_process:\n            for monitor in monitors:" in result


@pytest.mark.parametrize("does", ["self.seen.append(step)", "self.seen += [torch.rand(1)]", "torch.manual_seed(step)"])
def test_one_that_does_more_is_asked_on_every_process(convert_text, does):
    _, result = convert_text(SOURCE.format(does=does))
    assert "is_main_process else None\n" not in result
    assert "        if step % 2 == 0:\n            for monitor in monitors:" in result


@pytest.mark.parametrize(
    ("does", "seen"), [('self.logger.info("%d %f", step, loss)', 0), ("self.seen.append(step)", 2)]
)
def test_every_process_comes_to_the_end(convert_text, numbers_printed, does, seen):
    _, result = convert_text(SOURCE.format(does=does))
    assert numbers_printed(result, 1) == [seen]
    assert numbers_printed(result.replace("batch_size=4", "batch_size=2"), 2) == [seen]
