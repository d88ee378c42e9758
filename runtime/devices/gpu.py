"""What GPUs of all makers have in common: one process each, and a module of PyTorch with the same functions."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from runtime.devices.base import Device
from runtime.errors import WorldError


class Gpu(Device):
    """The GPU with the number of the process's local rank."""

    module: ClassVar[Any]  # of PyTorch
    scales = pins = joins_statistics = True

    @classmethod
    def is_available(cls) -> bool:
        return bool(cls.module.is_available())

    @classmethod
    def count(cls) -> int:
        return int(cls.module.device_count())

    @classmethod
    def names(cls) -> list[str]:
        return [cls.module.get_device_name(index) for index in range(cls.count())]

    @classmethod
    def is_in_use(cls) -> bool:
        return bool(cls.module.is_initialized())

    def own(self, local_rank: int, world_size: int) -> torch.device:
        if world_size == 1:
            return torch.device(self.kind.name)  # as the plain program: the current one
        if local_rank >= self.count():
            raise WorldError(
                f"local rank {local_rank} has no GPU: this machine shows {self.count()}. "
                "Start at most one process per GPU, or pass cpu=True."
            )
        device = torch.device(self.kind.name, local_rank)
        self.module.set_device(device)
        return device

    def current(self) -> torch.device:
        return torch.device(self.kind.name, self.module.current_device())

    def ddp_arguments(self, device: torch.device) -> dict[str, Any]:
        return {"device_ids": [device.index], "output_device": device.index}

    def synchronize(self) -> None:
        self.module.synchronize()

    def empty_cache(self) -> None:
        self.module.empty_cache()

    @property
    def _states(self) -> str:
        return f"torch_{self.kind.name}_manual_seed"

    def random_states(self) -> dict[str, Any]:
        return {self._states: self.module.get_rng_state_all()}

    def set_random_states(self, states: dict[str, Any]) -> None:
        found = states.get(self._states, [])
        if len(found) == self.count():
            self.module.set_rng_state_all(found)
        elif found:  # another number of GPUs: this process's own is what it draws from
            self.module.set_rng_state(found[min(self.module.current_device(), len(found) - 1)])

    def random_state(self) -> torch.Tensor:
        state: torch.Tensor = self.module.get_rng_state()
        return state

    def set_random_state(self, state: torch.Tensor) -> None:
        self.module.set_rng_state(state)
