"""A model to shard, and whether this torch can shard models on the CPU, which is what the tests here have."""

import pytest
import torch
from torch import nn

CAN_SHARD = hasattr(torch.cpu.Stream, "record_event")
needs_shards = pytest.mark.skipif(not CAN_SHARD, reason="shards models on the CPU, which torch can from 2.7 on")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + torch.tanh(self.norm(self.inner(x)))


class Net(nn.Module):
    """Sizes that two does not divide, a tied weight, a frozen layer, and a scalar."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Linear(5, width, bias=False)
        self.blocks = nn.ModuleList([Block(width), Block(width)])
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.back = nn.Linear(width, 5, bias=False)
        self.tied = nn.Linear(width, 5, bias=False)
        self.tied.weight = self.back.weight
        self.gain = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.gain * (self.back(self.frozen(x)) + self.tied(x))
