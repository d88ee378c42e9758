"""The kinds of device, in order of preference, and the choice among them."""

from __future__ import annotations

from typing import Any

import torch

from runtime.devices.base import HOST_BACKEND, Device, in_host_memory, moved, on_a_device
from runtime.devices.cpu import Cpu
from runtime.devices.cuda import Cuda
from runtime.devices.mps import Mps
from runtime.devices.streams import Streams
from runtime.devices.tpu import Tpu
from runtime.devices.xla import Xla
from runtime.devices.xpu import Xpu
from runtime.kinds import Kind
from runtime.tree import map_leaves

__all__ = [
    "DEVICES",
    "HOST_BACKEND",
    "Cpu",
    "Device",
    "Streams",
    "in_host_memory",
    "in_use",
    "kind_of",
    "kinds_here",
    "moved",
    "on_a_device",
    "one_each",
    "pick",
    "portable",
    "reached_by",
]  # fmt: skip

DEVICES: tuple[type[Device], ...] = (Tpu, Xla, Cuda, Xpu, Mps, Cpu)


def pick(cpu: bool, world_size: int) -> Device:
    """The first kind that is there; the CPU if asked for, or if several processes need a kind that can have them."""
    if cpu:
        return Cpu()
    for kind in DEVICES:
        if kind.is_available() and (world_size == 1 or kind.backend is not None):
            return kind()
    return Cpu()


def kinds_here() -> list[Device]:
    """One of every kind that this machine has."""
    return [kind() for kind in DEVICES if kind.is_available()]


def one_each() -> tuple[Kind, int]:
    """The kind of which each process of this machine can have one, and how many there are; the CPU: 0."""
    found = ((kind.kind, kind.count()) for kind in DEVICES)
    return next((pair for pair in found if pair[1]), (Cpu.kind, 0))


def in_use() -> str | None:
    """What this process has opened that processes it starts would need, as in torch.device(kind); None: nothing."""
    return next((kind.kind.name for kind in DEVICES if kind.is_in_use()), None)


def kind_of(device: torch.device | str) -> Device:
    """The kind that a device of PyTorch is of; a plain one where no class is about it."""
    name = device if isinstance(device, str) else device.type
    return next((kind() for kind in DEVICES if kind.kind.name == name), Device())


def reached_by(backend: str) -> tuple[Device, torch.device]:
    """The kind whose tensors a process group of that backend exchanges, and the device of this process that is one."""
    for kind in DEVICES:
        if kind.backend is not None and kind.backend in backend and kind.is_available():
            return kind(), kind().current()
    return Cpu(), torch.device(Cpu.kind.name)


def portable(data: Any) -> Any:
    """`data` as a file should hold it: tensors that could not be loaded without their device are copied to the host."""
    if not any(kind.is_available() for kind in DEVICES if not kind.is_portable):
        return data

    known: dict[tuple[Any, ...], torch.Tensor] = {}  # what is stored once stays so

    def copied(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or kind_of(leaf.device).is_portable:
            return leaf
        address = leaf.data_ptr()  # 0 where the device does not tell
        place = (address or id(leaf), leaf.dtype, leaf.shape, leaf.stride())
        if place not in known:
            known[place] = leaf.cpu()
        return known[place]

    return map_leaves(copied, data)
