"""GPUs of NVIDIA and AMD: NCCL between the processes."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from runtime.config import DistributedType, MixedPrecision
from runtime.devices.base import HOST_BACKEND
from runtime.devices.gpu import Gpu
from runtime.devices.streams import CudaStreams, Streams
from runtime.kinds import CUDA


class Cuda(Gpu):
    """A GPU of NVIDIA or AMD."""

    kind = CUDA
    module: ClassVar[Any] = torch.cuda
    backend = "nccl"
    backend_with_host = f"cpu:{HOST_BACKEND},cuda:nccl"
    distributed_type = DistributedType.MULTI_GPU

    def refusal(self, precision: MixedPrecision) -> str | None:
        if precision is MixedPrecision.BF16 and not torch.cuda.is_bf16_supported():
            return "mixed_precision='bf16' is not supported by this GPU. Use mixed_precision='fp16'."
        return None

    def group_arguments(self, own: torch.device, backend: str) -> dict[str, Any]:
        # Else NCCL connects the processes in their first collective: one that does not come to it could not be named.
        return {"device_id": own} if self.backend in backend else {}

    def streams(self, device: torch.device) -> Streams:
        return CudaStreams(device)
