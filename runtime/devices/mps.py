"""The GPU of an Apple machine: one process."""

from __future__ import annotations

from typing import Any

import torch

from runtime.devices.base import Device
from runtime.kinds import MPS

_STATE = "torch_mps_manual_seed"


class Mps(Device):
    """Apple's GPU. PyTorch has no process group for it."""

    kind = MPS

    @classmethod
    def is_available(cls) -> bool:
        return torch.backends.mps.is_available()

    def synchronize(self) -> None:
        torch.mps.synchronize()

    def empty_cache(self) -> None:
        torch.mps.empty_cache()

    def random_states(self) -> dict[str, Any]:
        return {_STATE: torch.mps.get_rng_state()}

    def set_random_states(self, states: dict[str, Any]) -> None:
        if _STATE in states:
            torch.mps.set_rng_state(states[_STATE])

    def random_state(self) -> torch.Tensor:
        return torch.mps.get_rng_state()

    def set_random_state(self, state: torch.Tensor) -> None:
        torch.mps.set_rng_state(state)
