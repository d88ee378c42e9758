"""`is_..._available`, as scripts import them from `accelerate.utils`: whether this machine has that kind of device."""

from __future__ import annotations

import os

from runtime.config import MixedPrecision
from runtime.devices import kinds_here
from runtime.devices.cuda import Cuda
from runtime.devices.mps import Mps
from runtime.devices.tpu import Tpu
from runtime.devices.xla import Xla
from runtime.devices.xpu import Xpu
from runtime.hardware import tpu_chips


def is_cuda_available() -> bool:
    """A GPU of NVIDIA or AMD."""
    return Cuda.is_available()


def is_xpu_available(check_device: bool = False) -> bool:
    """A GPU of Intel; that it is there is checked in any case."""
    return Xpu.is_available()


def is_mps_available(min_version: str = "1.12") -> bool:
    """The GPU of an Apple machine. Every PyTorch that the runtime works with is newer than 1.12."""
    return Mps.is_available()


def is_torch_tpu_available() -> bool:
    """A TPU through Google's torch_tpu."""
    return Tpu.is_available()


def is_torch_xla_available(check_is_tpu: bool = False, check_is_gpu: bool = False) -> bool:
    """torch_xla, where the runtime would use it: PJRT_DEVICE names a device, or there is a TPU.

    Args:
        check_is_tpu: and it is a TPU.
        check_is_gpu: and it is a GPU.
    """
    name = os.environ.get("PJRT_DEVICE") or ("TPU" if tpu_chips() else "")
    is_one = (not check_is_tpu or name == "TPU") and (not check_is_gpu or name in ("CUDA", "GPU", "ROCM"))
    return is_one and Xla.is_available()


def is_bf16_available(ignore_tpu: bool = False) -> bool:
    """Whether mixed_precision="bf16" can be used on the device that an `Accelerator` would take.

    Args:
        ignore_tpu: False for a TPU.
    """
    first = kinds_here()[0]
    if ignore_tpu and isinstance(first, (Tpu, Xla)):
        return False
    return first.refusal(MixedPrecision.BF16) is None


def is_fp16_available() -> bool:
    """Whether mixed_precision="fp16" computes in float16 on the device that an `Accelerator` would take."""
    return kinds_here()[0].scales


def is_hpu_available(init_hccl: bool = False) -> bool:
    """No: the runtime has no class for Habana's processors."""
    return False


def is_mlu_available(check_device: bool = False) -> bool:
    """No: the runtime has no class for Cambricon's processors."""
    return False


def is_musa_available(check_device: bool = False) -> bool:
    """No: the runtime has no class for Moore Threads' GPUs."""
    return False


def is_neuron_available(check_device: bool = False) -> bool:
    """No: the runtime has no class for AWS's processors."""
    return False


def is_npu_available(check_device: bool = False) -> bool:
    """No: the runtime has no class for Ascend's processors."""
    return False


def is_sdaa_available(check_device: bool = False) -> bool:
    """No: the runtime has no class for Teco's processors."""
    return False
