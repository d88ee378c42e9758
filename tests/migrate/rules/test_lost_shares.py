"""Data that a program without a loader shares out over its processes by hand, in a branch on several processes."""

import pytest

PROGRAM = """
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader


class Rows:
    def __init__(self, rows, rank=0, world_size=1):
        self.random = np.random.RandomState(rank)
        if world_size > 1:
            {share}
        self.rows = rows

    def batch(self):
        return torch.tensor(self.rows[self.random.randint(0, len(self.rows), 4)]).float()


def main():
    dist.init_process_group("nccl")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    if rank == 0:
        print("begins")
    torch.manual_seed(0)
    rows = Rows(np.loadtxt("rows.txt"), rank, world_size)
    model = DDP(nn.Linear(4, 1).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for {step} in {steps}:
        loss = model({batch}.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""
BY_HAND = {"step": "step", "steps": "range(100)", "batch": "rows.batch()"}
SHARES = ["rows = rows[rank::world_size]", "rows = rows[rank * 8 : rank * 8 + 8]"]


@pytest.mark.parametrize("share", SHARES)
def test_nothing_would_share_them_out(refused_text, share):
    refused_text(PROGRAM.format(share=share, **BY_HAND), "MIG113", share, ["by hand", "no DataLoader"])


def test_what_shares_nothing_out_goes(convert_text):
    _, result = convert_text(PROGRAM.format(share="print('several')", **BY_HAND))

    assert "accelerator.backward(loss)" in result
    assert "world_size" not in result


def test_a_loader_shares_them_out(convert_text):
    loaded = {"step": "x", "steps": "DataLoader(rows.rows, batch_size=4, shuffle=True)", "batch": "x.float()"}
    _, result = convert_text(PROGRAM.format(share=SHARES[0], **loaded))

    assert "[rank::" not in result
