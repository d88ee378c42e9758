"""The index of a process's GPU where a program computes it from the rank and the number of GPUs of a machine."""

import pytest

from migrate.report.model import Kind

PROGRAM = """\
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def train(model, device, loader, optimizer):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


def main():
    rank = int(os.environ["SLURM_PROCID"])
    gpus = int(os.environ["SLURM_GPUS_ON_NODE"])
    dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
    own = {own}
    torch.cuda.set_device(own)
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    model = DistributedDataParallel(nn.Linear(4, 1).to(own), device_ids=[own])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, own, loader, optimizer)


main()
"""


@pytest.mark.parametrize("own", ["rank % gpus", "rank - gpus * (rank // gpus)", "rank - (rank // gpus) * gpus"])
def test_what_remains_of_the_rank_is_the_gpu_of_the_process(convert_text, own):
    report, text = convert_text(PROGRAM.format(own=own))
    assert not report.of(Kind.LEFT)
    assert "own" not in text
    assert "train(model, loader, optimizer, accelerator)" in text


@pytest.mark.parametrize("own", ["rank - gpus * (rank // 8)", "rank - gpus"])
def test_another_difference_is_not_known(convert_text, own):
    report, text = convert_text(PROGRAM.format(own=own))
    assert report.of(Kind.LEFT)
    assert text == PROGRAM.format(own=own)
