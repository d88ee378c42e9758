"""Batch statistics over all processes where PyTorch's SyncBatchNorm does not work: on the CPU, and on a TPU."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm


class PlainSyncBatchNorm(_BatchNorm):
    """`torch.nn.SyncBatchNorm` of plain operations; keys and results are the same.

    No subclass of it, since DistributedDataParallel refuses those on the CPU. Mean and variance are those of all rows
    of all processes, also where these bring different numbers, and gradients flow through them to all processes.
    """

    process_group: Any

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  the name in PyTorch
        if not self.training:
            mean, variance = self.running_mean, self.running_var
            return functional.batch_norm(input, mean, variance, self.weight, self.bias, mean is None, 0.0, self.eps)
        x = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        dimensions = [dimension for dimension in range(x.ndim) if dimension != 1]
        shape = [1, -1] + [1] * (x.ndim - 2)
        count = torch.full((1,), float(x.numel() // x.shape[1]), dtype=x.dtype, device=x.device)
        joined = _summed(torch.cat([x.sum(dimensions), count]), self.process_group)
        total, mean = joined[-1].detach(), joined[:-1] / joined[-1].detach()
        centred = x - mean.view(shape)
        variance = _summed(centred.square().sum(dimensions), self.process_group) / total
        self._remember(mean.detach(), variance.detach() * (total / (total - 1)))
        result = centred * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            result = result * self.weight.view(shape) + self.bias.view(shape)
        return result.to(input.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        if self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        momentum = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


class _Summed(torch.autograd.Function):
    """The sum over the processes; its gradient is summed, too, since every process uses it."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, group: Any) -> Tensor:
        ctx.group = group
        result = own.clone()
        dist.all_reduce(result, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        result = gradients[0].clone()
        dist.all_reduce(result, group=ctx.group)
        return result, None


def _summed(own: Tensor, group: Any) -> Tensor:
    result: Tensor = _Summed.apply(own, group)  # type: ignore[no-untyped-call]
    return result


def with_joined_statistics(model: nn.Module) -> None:
    """Let the SyncBatchNorm layers of a model work without kernels of their own, in place."""
    found: list[Any] = [layer for layer in model.modules() if type(layer) is nn.SyncBatchNorm]
    for layer in found:
        layer.__class__ = PlainSyncBatchNorm
