"""The kinds of device, in order of preference, and the choice among them."""

from __future__ import annotations

from runtime.devices.base import Device, moved
from runtime.devices.cpu import Cpu
from runtime.devices.cuda import Cuda
from runtime.devices.mps import Mps
from runtime.devices.streams import Streams

__all__ = ["DEVICES", "Device", "Streams", "moved", "pick"]

DEVICES: tuple[type[Device], ...] = (Cuda, Mps, Cpu)


def pick(cpu: bool, world_size: int) -> Device:
    """The first kind that is there; the CPU if asked for, or if several processes need a kind that can have them."""
    for kind in DEVICES:
        if kind.is_available() and (not cpu or kind is Cpu) and (world_size == 1 or kind.backend is not None):
            return kind()
    return Cpu()
