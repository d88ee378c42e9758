"""What this machine has."""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import socket
import struct
from pathlib import Path

# Where a driver that torch could use shows itself on Linux: NVIDIA, Jetson, AMD, WSL, Intel. A reason to ask torch.
_DRIVER_FILES = ("/dev/nvidia*", "/dev/nvhost*", "/dev/kfd", "/dev/dxg", "/dev/dri/renderD*")

_TPUS = {"0x005e", "0x0062", "0x0063", "0x006f", "0x0076"}  # v4, v5p, v5e, v6e, v7: those that torch_tpu knows


def core_count() -> int:
    """The number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gpu_count() -> int:
    """The number of GPUs (or other devices) that torch can use for one process each.

    Imports torch (about a second) only where there can be one at all.
    """
    return _devices()[1]


def device_kind() -> str:
    """What these are, as in torch.device(kind): cuda, xpu, tpu; cpu where there are none. Imports torch likewise."""
    return _devices()[0]


def _devices() -> tuple[str, int]:
    if not may_have_gpus():
        return "cpu", 0
    import torch  # late: most launches on a machine without a GPU never need it here

    for kind, count in (("cuda", torch.cuda.device_count()), ("xpu", torch.xpu.device_count())):
        if count:
            return kind, count
    if torch.accelerator.is_available():
        found = torch.accelerator.current_accelerator()
        if found is not None and found.type == "tpu":
            return "tpu", torch.accelerator.device_count()
    return "cpu", 0


def address_towards(host: str) -> str | None:
    """The address of this machine that `host` sees; None if it is not known (yet). Nothing is sent."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # of a datagram socket: only chooses the way
            return str(probe.getsockname()[0])
    except OSError:
        return None


def interface_of(address: str) -> str | None:
    """The name of the network interface with this IPv4 address, as GLOO_SOCKET_IFNAME takes it; None elsewhere."""
    if platform.system() != "Linux":
        return None
    import fcntl  # late: not on Windows

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            with contextlib.suppress(OSError):  # it has no IPv4 address
                answer = fcntl.ioctl(probe, 0x8915, request)  # SIOCGIFADDR, netdevice(7)
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return None


def port_is_free(port: int) -> bool:
    """True if this machine can listen on `port`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def may_have_gpus() -> bool:
    """False where there is certainly no GPU that takes one process each; asks no driver."""
    system = platform.system()
    if system == "Linux":
        return any(glob.glob(pattern) for pattern in _DRIVER_FILES) or _has_tpu()
    return system != "Darwin"  # Apple's GPU is one device, shared by all processes: not counted


def _has_tpu() -> bool:
    """Whether a TPU is on the PCI bus; the network cards of Google's machines have the same vendor."""
    for vendor in glob.glob("/sys/bus/pci/devices/*/vendor"):
        with contextlib.suppress(OSError):
            if Path(vendor).read_text().strip() == "0x1ae0" and (
                Path(vendor).with_name("device").read_text().strip() in _TPUS
            ):
                return True
    return False
