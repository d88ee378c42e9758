"""What all processes enter needs what all have: `migrate/programs/output/supplies.py`."""

import textwrap

import pytest

PROGRAM = """
import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def evaluate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(model(x), y, reduction="sum").item()
    return total / len(loader.dataset)


def train(rank, epoch, model, optimizer, loaders, logger):
    loader, val_loader = loaders
    loader.sampler.set_epoch(epoch)
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    if rank == 0:
        logger.info("epoch %d: %.4f", epoch, evaluate(model.module, val_loader))
        print(evaluate(model.module, val_loader))


def main():
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    {first}
    if rank == 0:
        logger = logging.getLogger("train")
        val_loader = DataLoader(TensorDataset(torch.randn(30, 4), torch.randn(30, 1)), batch_size=8)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
{calls}


if __name__ == "__main__":
    main()
"""
BOTH = """
if rank == 0:
    train(rank, epoch, model, optimizer, [loader, val_loader], logger)
else:
    train(rank, epoch, model, optimizer, [loader, None], None)
"""
CHOSEN = """
held = [loader, val_loader if rank == 0 else None]
train(rank, epoch, model, optimizer, held, logger if rank == 0 else None)
"""
NONE_BEFORE = "train(rank, epoch, model, optimizer, [loader, val_loader], logger)"


def program(calls, first=""):
    text = PROGRAM.format(calls=textwrap.indent(calls.strip("\n"), " " * 8), first=first)
    return text.replace("    \n", "").lstrip("\n")


@pytest.mark.parametrize(
    ("calls", "first"),
    [(BOTH, ""), (CHOSEN, ""), (NONE_BEFORE, "logger = val_loader = None")],
    ids=["one call in both branches", "chosen in the call", "None before"],
)
def test_what_was_made_for_the_main_process_is_made_for_all(convert_text, numbers_printed, calls, first):
    _, result = convert_text(program(calls, first))

    assert "train(epoch, model, optimizer, [loader, val_loader], logger, accelerator)" in result or "held" in result
    main = result[result.index("def main") :]
    assert "is_main_process:\n        logger" not in main
    assert " else None" not in main
    alone, together = numbers_printed(result, 1), numbers_printed(result, 2)
    assert len(alone) == len(together) == 2


@pytest.mark.parametrize(
    "calls",
    [
        BOTH.replace("[loader, None], None)", "[loader, loader], None)"),
        BOTH.replace("else:\n    train(rank,", "else:\n    train(1 - rank,"),
        CHOSEN.replace("val_loader if rank == 0 else None", "val_loader if rank == 0 else loader"),
    ],
    ids=["another loader", "another number", "another loader is chosen"],
)
def test_processes_that_do_another_thing_are_refused(refused_text, calls):
    finding = refused_text(program(calls), "MIG113", "rank == 0")

    assert "processes part ways here" in finding.message


def test_what_only_the_main_process_reads_stays_its_own(convert_text):
    text = program(NONE_BEFORE, "logger = None").replace("        val_loader =", "    val_loader =")
    text = text.replace('logger.info("epoch %d: %.4f", epoch, evaluate(model.module, val_loader))', "pass")
    _, result = convert_text(text)

    assert "if accelerator.is_main_process:\n        logger = logging.getLogger" in result


TRAINER = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torch.utils.tensorboard import SummaryWriter


class Trainer:
    def __init__(self, rank, world):
        self.rank = rank
        data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
        self.sampler = DistributedSampler(data, num_replicas=world, rank=rank)
        self.loader = DataLoader(data, batch_size=8, sampler=self.sampler)
        if self.rank == 0:
            self.val_loader = DataLoader(TensorDataset(torch.randn(30, 4), torch.randn(30, 1)), batch_size=8)
            self.history = []
        if self.rank == 0:
            self.writer = SummaryWriter("logs")
        self.model = DDP(nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def evaluate(self):
        self.model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in self.val_loader:
                total += nn.functional.mse_loss(self.model.module(x), y, reduction="sum").item()
        self.model.train()
        return total / len(self.val_loader.dataset)

    def run(self):
        for epoch in range(2):
            self.sampler.set_epoch(epoch)
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            if self.rank == 0:
                self.history.append(self.evaluate())
                self.writer.add_scalar("loss", self.history[-1], epoch)
                print(self.history[-1])


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    Trainer(dist.get_rank(), dist.get_world_size()).run()


main()
""".lstrip("\n")


def test_so_it_is_with_attributes_that_other_methods_read(convert_text, numbers_printed):
    _, result = convert_text(TRAINER)

    set_up = result[result.index("def __init__") : result.index("def evaluate")]
    assert "is_main_process:\n            self.val_loader" not in set_up
    assert "\n        self.history = []" in set_up
    assert "        if self.accelerator.is_main_process:\n            self.writer = SummaryWriter" in set_up
    assert len(numbers_printed(result, 2)) == len(numbers_printed(result, 1)) == 2
