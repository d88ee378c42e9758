"""The GPU of an Apple machine: one process."""

from __future__ import annotations

import torch

from runtime.config import MixedPrecision
from runtime.devices.base import Device


class Mps(Device):
    """Apple's GPU. PyTorch has no process group for it."""

    kind = "mps"

    @classmethod
    def is_available(cls) -> bool:
        return torch.backends.mps.is_available()

    def refusal(self, precision: MixedPrecision) -> str | None:
        if precision is not MixedPrecision.FP16:
            return None
        return "mixed_precision='fp16' has no gradient scaler on Apple GPUs. Use mixed_precision='bf16'."

    def empty_cache(self) -> None:
        torch.mps.empty_cache()
