"""GPUs of NVIDIA and AMD: one process each, NCCL between them."""

from __future__ import annotations

from typing import Any

import torch

from runtime.config import DistributedType, MixedPrecision
from runtime.devices.base import HOST_BACKEND, Device
from runtime.devices.streams import CudaStreams, Streams
from runtime.errors import WorldError
from runtime.kinds import CUDA

_STATES = "torch_cuda_manual_seed"


class Cuda(Device):
    """The GPU with the number of the process's local rank."""

    kind = CUDA
    backend = "nccl"
    backend_with_host = f"cpu:{HOST_BACKEND},cuda:nccl"
    distributed_type = DistributedType.MULTI_GPU
    scales = pins = joins_statistics = True

    @classmethod
    def is_available(cls) -> bool:
        return torch.cuda.is_available()

    @classmethod
    def count(cls) -> int:
        return torch.cuda.device_count()

    @classmethod
    def names(cls) -> list[str]:
        return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]

    @classmethod
    def is_in_use(cls) -> bool:
        return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]

    def own(self, local_rank: int, world_size: int) -> torch.device:
        if world_size == 1:
            return torch.device("cuda")  # as the plain program: the current one
        if local_rank >= torch.cuda.device_count():
            raise WorldError(
                f"local rank {local_rank} has no GPU: this machine shows {torch.cuda.device_count()}. "
                "Start at most one process per GPU, or pass cpu=True."
            )
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
        return device

    def current(self) -> torch.device:
        return torch.device("cuda", torch.cuda.current_device())

    def refusal(self, precision: MixedPrecision) -> str | None:
        if precision is MixedPrecision.BF16 and not torch.cuda.is_bf16_supported():
            return "mixed_precision='bf16' is not supported by this GPU. Use mixed_precision='fp16'."
        return None

    def ddp_arguments(self, device: torch.device) -> dict[str, Any]:
        return {"device_ids": [device.index], "output_device": device.index}

    def streams(self, device: torch.device) -> Streams:
        return CudaStreams(device)

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def empty_cache(self) -> None:
        torch.cuda.empty_cache()

    def random_states(self) -> dict[str, Any]:
        return {_STATES: torch.cuda.get_rng_state_all()}

    def set_random_states(self, states: dict[str, Any]) -> None:
        found = states.get(_STATES, [])
        if len(found) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(found)
        elif found:  # another number of GPUs: this process's own is what it draws from
            torch.cuda.set_rng_state(found[min(torch.cuda.current_device(), len(found) - 1)])

    def random_state(self) -> torch.Tensor:
        return torch.cuda.get_rng_state()

    def set_random_state(self, state: torch.Tensor) -> None:
        torch.cuda.set_rng_state(state)
