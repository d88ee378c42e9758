"""The CPU: several processes talk over gloo."""

from __future__ import annotations

from runtime.config import DistributedType, MixedPrecision
from runtime.devices.base import Device


class Cpu(Device):
    """Host memory; nothing is copied."""

    kind = "cpu"
    backend = "gloo"
    distributed_type = DistributedType.MULTI_CPU
    needs_copies = False

    @classmethod
    def is_available(cls) -> bool:
        return True

    def refusal(self, precision: MixedPrecision) -> str | None:
        if precision is not MixedPrecision.FP16:
            return None
        return (
            "mixed_precision='fp16' needs a GPU, and this process runs on the CPU. "
            "Use mixed_precision='bf16', or start on a machine with a GPU."
        )
