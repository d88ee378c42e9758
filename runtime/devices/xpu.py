"""GPUs of Intel: XCCL between the processes."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from runtime.config import DistributedType
from runtime.devices.base import HOST_BACKEND
from runtime.devices.gpu import Gpu
from runtime.kinds import XPU


class Xpu(Gpu):
    """A GPU of Intel."""

    kind = XPU
    module: ClassVar[Any] = torch.xpu
    backend = "xccl"  # what PyTorch has for it from 2.8 on
    backend_with_host = f"cpu:{HOST_BACKEND},xpu:xccl"
    distributed_type = DistributedType.MULTI_XPU
