"""How a model lives on several processes; the base is one process."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from runtime.devices import Device
from runtime.handlers import DistributedDataParallelKwargs
from runtime.world import World


class Strategy:
    """One process: models are used as they are."""

    def __init__(self, world: World, device: Device, own: torch.device, options: DistributedDataParallelKwargs) -> None:
        self._world = world
        self._device = device
        self._own = own
        self._options = options

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model as the training loop should call it."""
        return model

    def average(self, models: Iterable[nn.Module]) -> None:
        """Average gradients over the processes after a backward, where that was not done while it ran."""

    def no_sync(self, model: nn.Module) -> AbstractContextManager[Any]:
        """A context in which backward does not exchange gradients."""
        return nullcontext()


def unwrapped(model: Any, keep_torch_compile: bool = True) -> Any:
    """The model that was wrapped for several devices.

    With `keep_torch_compile=False` also without the wrapper of `torch.compile`.
    """
    while True:
        if isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
            model = model.module
        elif not keep_torch_compile and hasattr(model, "_orig_mod"):
            model = model._orig_mod  # noqa: SLF001  torch.compile has no public name for it
        else:
            return model
