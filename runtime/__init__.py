"""Run a PyTorch training script on one device or on many: `from runtime import Accelerator`.

Names are imported when they are used (PEP 562), so `import runtime` loads no torch and the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.accelerator import Accelerator
    from runtime.config import DistributedType
    from runtime.data.loader import skip_first_batches
    from runtime.devices.availability import (
        is_bf16_available,
        is_cuda_available,
        is_fp16_available,
        is_hpu_available,
        is_mlu_available,
        is_mps_available,
        is_musa_available,
        is_neuron_available,
        is_npu_available,
        is_sdaa_available,
        is_torch_tpu_available,
        is_torch_xla_available,
        is_xpu_available,
    )
    from runtime.devices.generators import RNGType
    from runtime.handlers import (
        AutocastKwargs,
        DataLoaderConfiguration,
        DistributedDataParallelKwargs,
        GradScalerKwargs,
        InitProcessGroupKwargs,
        ProfileKwargs,
    )
    from runtime.launch.notebook import debug_launcher, notebook_launcher
    from runtime.local_sgd import LocalSGD
    from runtime.memory import find_executable_batch_size, release_memory
    from runtime.operations import (
        broadcast,
        broadcast_object_list,
        concatenate,
        convert_to_fp32,
        copy_tensor_to_devices,
        extract_model_from_parallel,
        find_batch_size,
        gather,
        gather_object,
        is_compiled_module,
        is_torch_tensor,
        listify,
        load,
        pad_across_processes,
        recursively_apply,
        reduce,
        send_to_device,
        slice_tensors,
        synchronize_rng_state,
        synchronize_rng_states,
        wait_for_everyone,
    )
    from runtime.plugins import (
        FullyShardedDataParallelPlugin,
        GradientAccumulationPlugin,
        ParallelismConfig,
        TorchDynamoPlugin,
    )
    from runtime.progress import tqdm
    from runtime.project import ProjectConfiguration
    from runtime.seed import set_seed
    from runtime.state import AcceleratorState, GradientState, PartialState
    from runtime.tracking import GeneralTracker, LoggerType
    from runtime.variables import patch_environment

_HOME = {
    "Accelerator": "runtime.accelerator",
    "AcceleratorState": "runtime.state",
    "AutocastKwargs": "runtime.handlers",
    "DataLoaderConfiguration": "runtime.handlers",
    "DistributedDataParallelKwargs": "runtime.handlers",
    "DistributedType": "runtime.config",
    "FullyShardedDataParallelPlugin": "runtime.plugins",
    "GeneralTracker": "runtime.tracking",
    "GradScalerKwargs": "runtime.handlers",
    "GradientAccumulationPlugin": "runtime.plugins",
    "GradientState": "runtime.state",
    "InitProcessGroupKwargs": "runtime.handlers",
    "LocalSGD": "runtime.local_sgd",
    "LoggerType": "runtime.tracking",
    "ParallelismConfig": "runtime.plugins",
    "PartialState": "runtime.state",
    "ProfileKwargs": "runtime.handlers",
    "ProjectConfiguration": "runtime.project",
    "RNGType": "runtime.devices.generators",
    "TorchDynamoPlugin": "runtime.plugins",
    "broadcast": "runtime.operations",
    "broadcast_object_list": "runtime.operations",
    "concatenate": "runtime.operations",
    "convert_to_fp32": "runtime.operations",
    "copy_tensor_to_devices": "runtime.operations",
    "debug_launcher": "runtime.launch.notebook",
    "extract_model_from_parallel": "runtime.operations",
    "find_batch_size": "runtime.operations",
    "find_executable_batch_size": "runtime.memory",
    "gather": "runtime.operations",
    "gather_object": "runtime.operations",
    "is_bf16_available": "runtime.devices.availability",
    "is_compiled_module": "runtime.operations",
    "is_cuda_available": "runtime.devices.availability",
    "is_fp16_available": "runtime.devices.availability",
    "is_hpu_available": "runtime.devices.availability",
    "is_mlu_available": "runtime.devices.availability",
    "is_mps_available": "runtime.devices.availability",
    "is_musa_available": "runtime.devices.availability",
    "is_neuron_available": "runtime.devices.availability",
    "is_npu_available": "runtime.devices.availability",
    "is_sdaa_available": "runtime.devices.availability",
    "is_torch_tensor": "runtime.operations",
    "is_torch_tpu_available": "runtime.devices.availability",
    "is_torch_xla_available": "runtime.devices.availability",
    "is_xpu_available": "runtime.devices.availability",
    "listify": "runtime.operations",
    "load": "runtime.operations",
    "notebook_launcher": "runtime.launch.notebook",
    "pad_across_processes": "runtime.operations",
    "patch_environment": "runtime.variables",
    "recursively_apply": "runtime.operations",
    "reduce": "runtime.operations",
    "release_memory": "runtime.memory",
    "send_to_device": "runtime.operations",
    "set_seed": "runtime.seed",
    "skip_first_batches": "runtime.data.loader",
    "slice_tensors": "runtime.operations",
    "synchronize_rng_state": "runtime.operations",
    "synchronize_rng_states": "runtime.operations",
    "tqdm": "runtime.progress",
    "wait_for_everyone": "runtime.operations",
}

__all__ = [
    "Accelerator",
    "AcceleratorState",
    "AutocastKwargs",
    "DataLoaderConfiguration",
    "DistributedDataParallelKwargs",
    "DistributedType",
    "FullyShardedDataParallelPlugin",
    "GeneralTracker",
    "GradScalerKwargs",
    "GradientAccumulationPlugin",
    "GradientState",
    "InitProcessGroupKwargs",
    "LocalSGD",
    "LoggerType",
    "ParallelismConfig",
    "PartialState",
    "ProfileKwargs",
    "ProjectConfiguration",
    "RNGType",
    "TorchDynamoPlugin",
    "broadcast",
    "broadcast_object_list",
    "concatenate",
    "convert_to_fp32",
    "copy_tensor_to_devices",
    "debug_launcher",
    "extract_model_from_parallel",
    "find_batch_size",
    "find_executable_batch_size",
    "gather",
    "gather_object",
    "is_bf16_available",
    "is_compiled_module",
    "is_cuda_available",
    "is_fp16_available",
    "is_hpu_available",
    "is_mlu_available",
    "is_mps_available",
    "is_musa_available",
    "is_neuron_available",
    "is_npu_available",
    "is_sdaa_available",
    "is_torch_tensor",
    "is_torch_tpu_available",
    "is_torch_xla_available",
    "is_xpu_available",
    "listify",
    "load",
    "notebook_launcher",
    "pad_across_processes",
    "patch_environment",
    "recursively_apply",
    "reduce",
    "release_memory",
    "send_to_device",
    "set_seed",
    "skip_first_batches",
    "slice_tensors",
    "synchronize_rng_state",
    "synchronize_rng_states",
    "tqdm",
    "wait_for_everyone",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'runtime' has no attribute {name!r}. It has: {', '.join(__all__)}.")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
