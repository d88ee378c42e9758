"""The GPU of an Apple machine: one process."""

from __future__ import annotations

import torch

from runtime.devices.base import Device


class Mps(Device):
    """Apple's GPU. PyTorch has no process group for it."""

    kind = "mps"

    @classmethod
    def is_available(cls) -> bool:
        return torch.backends.mps.is_available()

    def empty_cache(self) -> None:
        torch.mps.empty_cache()
