"""The CPU: several processes talk over gloo."""

from __future__ import annotations

from runtime.config import DistributedType
from runtime.devices.base import HOST_BACKEND, Device
from runtime.kinds import CPU


class Cpu(Device):
    """Host memory; nothing is copied."""

    kind = CPU
    backend = backend_with_host = HOST_BACKEND
    distributed_type = DistributedType.MULTI_CPU
    needs_copies = False

    @classmethod
    def is_available(cls) -> bool:
        return True
