"""TPU chips through Google's torch_tpu: one process each, plain PyTorch on top.

torch_tpu makes a device `tpu` (PrivateUse1) and the backend `tpu_dist` known when torch is imported. What it is asked
here goes through `torch.accelerator`: most of `torch.tpu` raises when anybody but PyTorch calls it, and
`hasattr(torch, "tpu")` is true on every machine that has the package.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch

from runtime.config import DistributedType
from runtime.devices.base import HOST_BACKEND, Device
from runtime.errors import WorldError
from runtime.hardware import tpu_chips
from runtime.kinds import TPU

_STATES = "torch_tpu_manual_seed"


class Tpu(Device):
    """The one chip of this process, which has the index 0 in each of them."""

    kind = TPU
    backend = "tpu_dist"
    backend_with_host = f"cpu:{HOST_BACKEND},tpu:tpu_dist"
    meets_on_host = True  # messages are small, and cut at many places, each of which a TPU would compile
    distributed_type = distributed_type_alone = DistributedType.XLA  # scripts give their batches one shape by it
    moves_in_place = False
    is_portable = False  # torch.load without map_location would ask for a TPU
    compiler = "tpu"

    @classmethod
    def is_available(cls) -> bool:
        if not torch.accelerator.is_available():  # torch 2.6 raises where newer ones give None
            return False
        found = torch.accelerator.current_accelerator()
        return found is not None and found.type == "tpu"

    @classmethod
    def count(cls) -> int:
        return tpu_chips() if cls.is_available() else 0

    def own(self, local_rank: int, world_size: int) -> torch.device:
        device = torch.device("tpu", 0)
        torch.empty(1, device=device)  # the first backward counts devices, and would count none before one is in use
        return device

    def current(self) -> torch.device:
        return torch.device("tpu", 0)

    def launch_variables(self, machines: int, processes: int) -> Mapping[str, str]:
        """What torch_tpu puts into the environment of the launching process; there it stays, too.

        Raises:
            WorldError: these chips cannot be shared out to that many processes.
        """
        from torch.tpu.distributed import set_tpu_launch_env  # type: ignore[import-not-found]  # there with the device

        before = dict(os.environ)
        try:
            set_tpu_launch_env(nnodes=machines, nproc_per_node=processes)
        except (RuntimeError, ValueError) as error:
            raise WorldError(
                f"{processes} processes cannot share the TPU chips of this machine, which shows {tpu_chips()}: "
                f"{error}. Start as many as there are chips, or one."
            ) from error
        return {name: value for name, value in os.environ.items() if before.get(name) != value}

    def synchronize(self) -> None:
        torch.accelerator.synchronize()

    def random_states(self) -> dict[str, Any]:
        return {_STATES: [self.random_state()]}

    def set_random_states(self, states: dict[str, Any]) -> None:
        if states.get(_STATES):
            self.set_random_state(states[_STATES][0])

    def random_state(self) -> torch.Tensor:
        # As a checkpointed layer asks for it: PyTorch may call torch.tpu.get_rng_state(), which we must not.
        from torch.utils.checkpoint import get_device_states

        _, states = get_device_states(torch.empty(1, device="tpu"))
        return states[0].cpu()

    def set_random_state(self, state: torch.Tensor) -> None:
        from torch.utils.checkpoint import set_device_states

        set_device_states([0], [state], device_type="tpu")
