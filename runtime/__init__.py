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

_NAMES = {  # where each is at home
    "runtime.accelerator": "Accelerator",
    "runtime.config": "DistributedType",
    "runtime.data.loader": "skip_first_batches",
    "runtime.devices.availability": (
        "is_bf16_available is_cuda_available is_fp16_available is_hpu_available is_mlu_available "
        "is_mps_available is_musa_available is_neuron_available is_npu_available is_sdaa_available "
        "is_torch_tpu_available is_torch_xla_available is_xpu_available"
    ),
    "runtime.devices.generators": "RNGType",
    "runtime.handlers": (
        "AutocastKwargs DataLoaderConfiguration DistributedDataParallelKwargs GradScalerKwargs "
        "InitProcessGroupKwargs ProfileKwargs"
    ),
    "runtime.launch.notebook": "debug_launcher notebook_launcher",
    "runtime.local_sgd": "LocalSGD",
    "runtime.memory": "find_executable_batch_size release_memory",
    "runtime.operations": (
        "broadcast broadcast_object_list concatenate convert_to_fp32 copy_tensor_to_devices "
        "extract_model_from_parallel find_batch_size gather gather_object is_compiled_module is_torch_tensor "
        "listify load pad_across_processes recursively_apply reduce send_to_device slice_tensors "
        "synchronize_rng_state synchronize_rng_states wait_for_everyone"
    ),
    "runtime.plugins": "FullyShardedDataParallelPlugin GradientAccumulationPlugin ParallelismConfig TorchDynamoPlugin",
    "runtime.progress": "tqdm",
    "runtime.project": "ProjectConfiguration",
    "runtime.seed": "set_seed",
    "runtime.state": "AcceleratorState GradientState PartialState",
    "runtime.tracking": "GeneralTracker LoggerType",
    "runtime.variables": "patch_environment",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

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
