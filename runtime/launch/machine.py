"""What this machine has."""

from __future__ import annotations

import glob
import os
import platform
import socket

# Where a driver that torch could use shows itself on Linux: NVIDIA, Jetson, AMD, WSL, Intel. A reason to ask torch.
_DRIVER_FILES = ("/dev/nvidia*", "/dev/nvhost*", "/dev/kfd", "/dev/dxg", "/dev/dri/renderD*")


def core_count() -> int:
    """The number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gpu_count() -> int:
    """The number of GPUs that torch can use for one process each.

    Imports torch (about a second) only where there can be a GPU at all.
    """
    if not _may_have_gpus():
        return 0
    import torch  # late: most launches on a machine without a GPU never need it here

    return torch.cuda.device_count() or torch.xpu.device_count()


def port_is_free(port: int) -> bool:
    """True if this machine can listen on `port`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _may_have_gpus() -> bool:
    system = platform.system()
    if system == "Linux":
        return any(glob.glob(pattern) for pattern in _DRIVER_FILES)
    return system != "Darwin"  # Apple's GPU is one device, shared by all processes: not counted
