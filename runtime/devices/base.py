"""What the runtime asks of a kind of device; the answers here are those of a plain one."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from runtime.config import DistributedType, MixedPrecision
from runtime.devices.streams import Streams
from runtime.tree import children, rebuilt


class Device:
    """One kind of device. Subclasses override the few answers that differ."""

    kind: ClassVar[str]  # the name in torch.device(kind)
    backend: ClassVar[str | None] = None  # of the process group; None: more than one process is not possible
    backend_with_host: ClassVar[str | None] = None  # the same, where tensors in host memory are exchanged, too
    distributed_type: ClassVar[DistributedType] = DistributedType.NO  # of a run with several processes
    needs_copies: ClassVar[bool] = True  # batches are made in host memory and must be copied
    scales: ClassVar[bool] = False  # has float16 with a gradient scaler; without, "fp16" computes in full precision

    @classmethod
    def is_available(cls) -> bool:
        """Whether this machine has one."""
        return False

    def own(self, local_rank: int, world_size: int) -> torch.device:
        """The device of this process, made current where the kind has a current device."""
        return torch.device(self.kind)

    def refusal(self, precision: MixedPrecision) -> str | None:
        """Why `precision` cannot be used here, with the way out; None if it can."""
        return None

    def ddp_arguments(self, device: torch.device) -> dict[str, Any]:
        """Arguments of DistributedDataParallel that depend on the device."""
        return {}

    def streams(self, device: torch.device) -> Streams | None:
        """What copies batches beside the computation; None where that cannot be."""
        return None

    def empty_cache(self) -> None:
        """Give cached memory back."""

    def random_states(self) -> dict[str, Any]:
        """The states of the random number generators that only this kind has, by the names of Accelerate."""
        return {}

    def set_random_states(self, states: dict[str, Any]) -> None:
        """Put these generators into such states; those of another kind are left out."""


def moved(data: Any, device: torch.device, non_blocking: bool = False) -> Any:
    """`data` with its tensors on `device`: nested containers, dataclasses, and whatever has a method `to`.

    Leaves of other types come back as they are, and so does a container in which nothing had to move.
    """
    if isinstance(data, torch.Tensor):
        return data.to(device, non_blocking=non_blocking)
    if callable(getattr(data, "to", None)) and not isinstance(
        data, type
    ):  # PackedSequence, BatchEncoding, graph batches
        try:
            return data.to(device, non_blocking=non_blocking)
        except TypeError:  # a `to` without that argument
            return data.to(device)
    inside = children(data)
    if not inside:
        return data
    values = [moved(value, device, non_blocking) for _, value in inside]
    if all(new is old for new, (_, old) in zip(values, inside, strict=True)):
        return data
    return rebuilt(data, values)
