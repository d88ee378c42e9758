"""What this machine has."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import struct

from runtime.hardware import may_have_accelerator
from runtime.kinds import CPU, Kind


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


def device_kind() -> Kind:
    """What these are; the CPU where there are none. Imports torch likewise."""
    return _devices()[0]


def _devices() -> tuple[Kind, int]:
    if not may_have_accelerator():
        return CPU, 0
    from runtime.devices import one_each  # late: most launches on a machine without a GPU never need torch

    return one_each()


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
