"""Gradients that are averaged after a backward, whatever took part in it."""

from __future__ import annotations

import torch
from torch import nn

from runtime.collectives import reduce
from runtime.world import World


def average_gradients(world: World, parameters: list[nn.Parameter]) -> None:
    """Gradients become their mean over the processes; where only some have one, the others count as zero."""
    is_there = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
    takes_part = reduce(world, is_there, is_checked=False).tolist()
    taking = [p for p, count in zip(parameters, takes_part, strict=True) if count]
    for parameter in taking:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    gradients = [parameter.grad for parameter in taking]
    for gradient, mean in zip(gradients, reduce(world, gradients, "mean", is_checked=False), strict=True):
        assert gradient is not None
        gradient.copy_(mean)
