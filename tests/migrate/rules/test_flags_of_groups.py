"""A flag under which a function of the project joins a process group, and where else the flag is read."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def join(args):
    {joined}


class Trainer:
    def __init__(self, args, loader):
        self.args = args
        torch.manual_seed(0)
        self.model = nn.Linear(4, 1)
        if args.distributed:
            self.model = nn.parallel.DistributedDataParallel(self.model)
        self.loader = loader
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        for epoch in range(2):
            if self.args.distributed:
                self.loader.sampler.set_epoch(epoch)
            for x, y in self.loader:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        print("%.5f" % sum((p * p).sum().item() for p in self.model.parameters()))


parser = argparse.ArgumentParser()
parser.add_argument("--distributed", action="store_true")
parser.add_argument("--half", action="store_true")
args = parser.parse_args({given})
{called}
data = TensorDataset(torch.arange(64.0).view(16, 4) / 64, torch.ones(16, 1))
sampler = DistributedSampler(data, shuffle=False) if args.distributed else None
loader = DataLoader(data, batch_size=4, sampler=sampler)
Trainer(args, loader).fit()
"""
JOINED = 'args.rank = int(os.environ["RANK"])\n    dist.init_process_group("gloo")'
CALLED = "if args.distributed:\n    join(args)"
HOLES = {"joined": JOINED, "called": CALLED, "given": "[]"}
DIRECT = {"joined": "pass", "called": 'if args.distributed:\n    dist.init_process_group("gloo")'}
#: What does not say that the flag is there for several processes.
OPEN = {
    "a function that joins at times": {"joined": 'if args.half:\n        dist.init_process_group("gloo")'},
    "called without the flag, too": {"called": f"{CALLED}\nif args.half:\n    pass\njoin(args)"},
}


@pytest.mark.parametrize("holes", [{}, DIRECT], ids=["a function joins", "the script joins"])
def test_the_flag_goes_wherever_the_object_that_holds_it_is_read(convert_text, numbers_printed, holes):
    report, text = convert_text(PROGRAM.format(**HOLES | holes))

    assert not report.of(Kind.LEFT)
    assert "set_epoch" not in text
    assert "args.distributed" not in text
    alone = numbers_printed(text, 1)
    assert numbers_printed(text.replace("batch_size=4", "batch_size=2"), 2) == alone


@pytest.mark.parametrize("name", OPEN)
def test_another_condition_is_not_taken_for_it(convert_text, name):
    report, text = convert_text(PROGRAM.format(**HOLES | OPEN[name]))

    assert report.of(Kind.LEFT) or "args.distributed" in text
    assert "accelerator" not in text
