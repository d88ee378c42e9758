"""A trainer in a file of its own: what joins a group, or wraps its model, in the script above is the program's, too."""

import pytest
from typer.testing import CliRunner

from migrate.cli import app

TRAINER = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, model, optimizer, trainloader, sampler=None, distributed=False, rank=0, device="cpu"):
        self.model = model
        self.optimizer = optimizer
        self.trainloader = trainloader
        self.sampler = sampler
        self.distributed = distributed
        self.rank = rank
        self.device = device

    def train(self):
        for e in range(2):
            self.model.train()
            if isinstance(self.sampler, DistributedSampler):
                self.sampler.set_epoch(e)
            for x, y in self.trainloader:
                x, y = x.to(self.device), y.to(self.device)
                loss = torch.nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                loss = loss.detach()
                if self.distributed:
                    dist.reduce(loss, dst=0, op=dist.ReduceOp.SUM)
                if self.rank == 0:
                    print(loss.item())
            if self.distributed:
                dist.barrier()
"""
SCRIPT = """\
import argparse
import os
import torch
import torch.distributed as dist
from lib import Trainer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def train(args):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local_rank)
    device = torch.device(f"cuda:{{local_rank}}")
    model = DDP(torch.nn.Linear(4, 1).to(device), device_ids=[local_rank])
    {early}
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optimizer, loader, sampler, True, rank, device)
    trainer.train()


if __name__ == "__main__":
    torch.manual_seed(0)
    train(argparse.ArgumentParser().parse_args())
"""
#: What others wait for before the trainer makes the accelerator.
EARLY = """if rank == 0:
        with open("settings.txt", "w") as f:
            f.write(str(args))
    dist.barrier()"""


@pytest.fixture
def written(tmp_path):
    """What is said of the script, and what becomes of it and of the trainer."""

    def run(early):
        (tmp_path / "pyproject.toml").touch()
        (tmp_path / "lib.py").write_text(TRAINER)
        (tmp_path / "train.py").write_text(SCRIPT.format(early=early))
        result = CliRunner().invoke(app, ["--write", "."])
        return " ".join(result.output.split()), *((tmp_path / f"{n}.py").read_text() for n in ("train", "lib"))

    return run


def test_a_program_is_left_where_its_group_cannot_go_away(written):
    said, script, trainer = written(EARLY)

    assert script == SCRIPT.format(early=EARLY)
    assert trainer == TRAINER
    assert "MIG113 this asks which process it is, before the accelerator exists" in said


def test_a_group_that_can_go_away_does(written):
    _, script, trainer = written("pass")

    assert "init_process_group" not in script
    assert "DDP" not in script
    assert "self.accelerator.backward(loss)" in trainer
