"""What shows itself on this machine, without PyTorch: devices, a reason to ask PyTorch for them or not, and addresses.

Devices are looked for in /dev and /sys, in less than a millisecond: nothing is opened, started or asked over a network.
"""

from __future__ import annotations

import glob
import os
import platform
import socket
from pathlib import Path

# Where a driver that torch could use shows itself on Linux: NVIDIA, Jetson, AMD, WSL, Intel.
_DRIVER_FILES = ("/dev/nvidia*", "/dev/nvhost*", "/dev/kfd", "/dev/dxg", "/dev/dri/renderD*")
_PCI = Path("/sys/bus/pci/devices")
_DEV = Path("/dev")
_GOOGLE = "0x1ae0"  # the PCI vendor of TPU chips
# v4, v5p, v5e, v6e, v7: those that torch_tpu 0.2 knows; other chips of Google's are no TPU (network cards).
_TPUS = {"0x005e", "0x0062", "0x0063", "0x006f", "0x0076"}


def may_have_accelerator() -> bool:
    """Whether torch could find a device beside the CPU that several processes can have one each of."""
    if tpu_chips():
        return True
    system = platform.system()
    if system == "Linux":
        return any(glob.glob(pattern) for pattern in _DRIVER_FILES)
    return system != "Darwin"  # Apple's GPU is one device, shared by all processes: not counted


def tpu_chips(pci: Path = _PCI, dev: Path = _DEV) -> int:
    """The number of TPU chips that this machine shows and that this process (or container) may open."""
    try:
        return sum(_is_usable(Path(device.path), dev) for device in os.scandir(pci))
    except OSError:  # no PCI, or not Linux
        return 0


def address_towards(host: str) -> str | None:
    """The address of this machine that `host` sees; None if it is not known (yet). Nothing is sent."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # of a datagram socket: only chooses the way
            return str(probe.getsockname()[0])
    except OSError:
        return None


def _is_usable(device: Path, dev: Path) -> bool:
    if _text(device / "vendor") != _GOOGLE or _text(device / "device") not in _TPUS:
        return False
    group = Path(os.path.realpath(device / "iommu_group")).name
    return (dev / "vfio" / group).exists() or any(dev.glob("accel*"))  # the second with older drivers


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
