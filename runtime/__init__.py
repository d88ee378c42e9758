"""Run a PyTorch training script on one device or on many: `from runtime import Accelerator`.

Names are imported when they are used (PEP 562), so `import runtime` loads no torch and the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.accelerator import Accelerator
    from runtime.collectives import broadcast_object_list, gather_object
    from runtime.config import DistributedType
    from runtime.data.loader import skip_first_batches
    from runtime.handlers import (
        AutocastKwargs,
        DataLoaderConfiguration,
        DistributedDataParallelKwargs,
        GradScalerKwargs,
        InitProcessGroupKwargs,
        ProfileKwargs,
    )
    from runtime.local_sgd import LocalSGD
    from runtime.memory import find_executable_batch_size, release_memory
    from runtime.plugins import (
        FullyShardedDataParallelPlugin,
        GradientAccumulationPlugin,
        ParallelismConfig,
        TorchDynamoPlugin,
    )
    from runtime.progress import tqdm
    from runtime.project import ProjectConfiguration
    from runtime.seed import set_seed
    from runtime.tracking import GeneralTracker, LoggerType

_HOME = {
    "TorchDynamoPlugin": "runtime.plugins",
    "Accelerator": "runtime.accelerator",
    "AutocastKwargs": "runtime.handlers",
    "DataLoaderConfiguration": "runtime.handlers",
    "DistributedDataParallelKwargs": "runtime.handlers",
    "DistributedType": "runtime.config",
    "FullyShardedDataParallelPlugin": "runtime.plugins",
    "GeneralTracker": "runtime.tracking",
    "GradScalerKwargs": "runtime.handlers",
    "GradientAccumulationPlugin": "runtime.plugins",
    "InitProcessGroupKwargs": "runtime.handlers",
    "LocalSGD": "runtime.local_sgd",
    "LoggerType": "runtime.tracking",
    "ParallelismConfig": "runtime.plugins",
    "ProfileKwargs": "runtime.handlers",
    "ProjectConfiguration": "runtime.project",
    "broadcast_object_list": "runtime.collectives",
    "find_executable_batch_size": "runtime.memory",
    "gather_object": "runtime.collectives",
    "release_memory": "runtime.memory",
    "set_seed": "runtime.seed",
    "skip_first_batches": "runtime.data.loader",
    "tqdm": "runtime.progress",
}

__all__ = [
    "Accelerator",
    "AutocastKwargs",
    "DataLoaderConfiguration",
    "DistributedDataParallelKwargs",
    "DistributedType",
    "FullyShardedDataParallelPlugin",
    "GeneralTracker",
    "GradScalerKwargs",
    "GradientAccumulationPlugin",
    "InitProcessGroupKwargs",
    "LocalSGD",
    "LoggerType",
    "ParallelismConfig",
    "ProfileKwargs",
    "ProjectConfiguration",
    "TorchDynamoPlugin",
    "broadcast_object_list",
    "find_executable_batch_size",
    "gather_object",
    "release_memory",
    "set_seed",
    "skip_first_batches",
    "tqdm",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'runtime' has no attribute {name!r}. It has: {', '.join(__all__)}.")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
