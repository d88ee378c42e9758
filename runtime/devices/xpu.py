"""GPUs of Intel: one process each, XCCL between them."""

from __future__ import annotations

from typing import Any

import torch

from runtime.config import DistributedType
from runtime.devices.base import HOST_BACKEND, Device
from runtime.errors import WorldError
from runtime.kinds import XPU

_STATES = "torch_xpu_manual_seed"


class Xpu(Device):
    """The GPU with the number of the process's local rank."""

    kind = XPU
    backend = "xccl"  # what PyTorch has for it from 2.8 on
    backend_with_host = f"cpu:{HOST_BACKEND},xpu:xccl"
    distributed_type = DistributedType.MULTI_XPU
    scales = pins = joins_statistics = True

    @classmethod
    def is_available(cls) -> bool:
        return torch.xpu.is_available()

    @classmethod
    def count(cls) -> int:
        return torch.xpu.device_count()

    @classmethod
    def names(cls) -> list[str]:
        return [torch.xpu.get_device_name(index) for index in range(torch.xpu.device_count())]

    @classmethod
    def is_in_use(cls) -> bool:
        return bool(torch.xpu.is_initialized())  # type: ignore[no-untyped-call]

    def own(self, local_rank: int, world_size: int) -> torch.device:
        if world_size == 1:
            return torch.device("xpu")  # as the plain program: the current one
        if local_rank >= torch.xpu.device_count():
            raise WorldError(
                f"local rank {local_rank} has no GPU: this machine shows {torch.xpu.device_count()}. "
                "Start at most one process per GPU, or pass cpu=True."
            )
        device = torch.device("xpu", local_rank)
        torch.xpu.set_device(device)
        return device

    def current(self) -> torch.device:
        return torch.device("xpu", torch.xpu.current_device())

    def ddp_arguments(self, device: torch.device) -> dict[str, Any]:
        return {"device_ids": [device.index], "output_device": device.index}

    def synchronize(self) -> None:
        torch.xpu.synchronize()

    def empty_cache(self) -> None:
        torch.xpu.empty_cache()

    def random_states(self) -> dict[str, Any]:
        return {_STATES: torch.xpu.get_rng_state_all()}

    def set_random_states(self, states: dict[str, Any]) -> None:
        found = states.get(_STATES, [])
        if len(found) == torch.xpu.device_count():
            torch.xpu.set_rng_state_all(found)
        elif found:  # another number of GPUs: this process's own is what it draws from
            torch.xpu.set_rng_state(found[min(torch.xpu.current_device(), len(found) - 1)])

    def random_state(self) -> torch.Tensor:
        return torch.xpu.get_rng_state()

    def set_random_state(self, state: torch.Tensor) -> None:
        torch.xpu.set_rng_state(state)
