"""Gradients that are averaged after a backward, whatever took part in it."""

from __future__ import annotations

import torch
from torch import nn

from runtime.collectives import all_flags, reduce
from runtime.messages import agreed
from runtime.watch import GRADIENTS
from runtime.world import World

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by the bytes of an element


def average_gradients(world: World, parameters: list[nn.Parameter]) -> None:
    """Gradients become their mean over the processes; where only some have one, the others count as zero."""
    takes_part = counts_of_gradients(world, parameters)
    taking = [p for p, count in zip(parameters, takes_part, strict=True) if count]
    for parameter in taking:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    gradients = [parameter.grad for parameter in taking]
    means = reduce(world, gradients, "mean", call=GRADIENTS, is_checked=False)  # all have just said the same of them
    for gradient, mean in zip(gradients, means, strict=True):
        assert gradient is not None
        gradient.copy_(mean)


def counts_of_gradients(world: World, parameters: list[nn.Parameter]) -> list[int]:
    """On how many processes each of the parameters has a gradient.

    By a message that says what it is: a sum might meet the gradients that PyTorch sums in another process's backward.
    """
    is_there = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.uint8)
    counts: list[int] = agreed(world, [is_there], GRADIENTS).stacked(0).sum(0).tolist()
    return counts


def unequal(world: World, parameters: list[nn.Parameter]) -> int | None:
    """The index of the first parameter that processes hold different values of; by one message of a number for each."""
    sums = torch.tensor([_sum_of_bits(parameter.detach()) for parameter in parameters], dtype=torch.int64)
    differ = (agreed(world, [sums], GRADIENTS).stacked(0) != sums).any(0).nonzero()
    return int(differ[0]) if len(differ) else None


def _sum_of_bits(values: torch.Tensor) -> int:
    if values.layout is not torch.strided or values.is_quantized or values.is_meta:
        return 0
    flat = torch.view_as_real(values) if values.is_complex() else values
    return int(flat.reshape(-1).view(_BITS[flat.element_size()]).sum(dtype=torch.int64))


def are_equal_everywhere(world: World, parameters: list[nn.Parameter]) -> bool:
    """Whether all processes hold the same values, to the last bit."""
    own = [parameter.detach() for parameter in parameters]
    largest = reduce(world, own, "max", call=GRADIENTS, is_checked=True)
    is_mine = all(torch.equal(one, other) for one, other in zip(own, largest, strict=True))
    return all(all_flags(world, is_mine, GRADIENTS))
