"""`torch.tpu` as torch_tpu 0.2.0 has it, around the compiled device: what it allows, and what it refuses.

`make test-tpu-contract` holds `NAMES`, `INTERNAL` and `REFUSAL` against the real package.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import types
from importlib.machinery import ExtensionFileLoader
from typing import Any

import torch
import torch.distributed as dist

#: Only PyTorch itself may call these: a script gets an error from the real package, and from here.
INTERNAL = (
    "current_device", "current_stream", "device", "device_count", "get_rng_state", "initial_seed", "is_available",
    "set_device", "set_stream", "synchronize",
)  # fmt: skip
#: Anybody may.
NAMES = (
    "Event", "Stream", "default_generators", "distributed", "get_amp_supported_dtype", "is_initialized", "manual_seed",
    "manual_seed_all", "set_rng_state", "stream",
)  # fmt: skip
REFUSAL = "{name} is internal to TorchTPU and can only be called by the PyTorch framework (torch and torch_tpu)."
LAUNCH_VARIABLES = ("TORCH_TPU_SLICEBUILDER_ADDRESSES", "TORCH_TPU_TOPOLOGY", "TORCH_TPU_XPROF_SESSION_ID")
TOPOLOGIES = {1: "1,1,1", 4: "2,2,1", 8: "2,4,1"}  # of a v6e: the numbers of processes that are possible


def install(library: str) -> None:
    """Make the device `tpu` and the backend `tpu_dist` known to PyTorch, for the rest of this process."""
    if hasattr(torch, "tpu"):
        return
    compiled = _loaded(library)
    compiled.init()
    torch.utils.rename_privateuse1_backend("tpu")
    torch._register_device_module("tpu", _module(compiled))
    sys.modules["torch.tpu"] = torch.tpu
    sys.modules["torch.tpu.distributed"] = torch.tpu.distributed
    torch.utils.generate_methods_for_privateuse1_backend()

    def create(store: Any, rank: int, size: int, timeout: Any) -> Any:
        return compiled.group_over(dist.ProcessGroupGloo(store, rank, size, timeout))

    dist.Backend.register_backend("tpu_dist", create, devices=["tpu"])


def _loaded(library: str) -> Any:
    loader = ExtensionFileLoader("standin_tpu", library)
    spec = importlib.util.spec_from_loader("standin_tpu", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _module(compiled: Any) -> types.ModuleType:
    generator = compiled.default_generator()
    members: dict[str, Any] = {
        "_is_in_bad_fork": lambda: False,
        "_lazy_init": lambda: None,
        "Event": torch.Event,
        "Stream": torch.Stream,
        "stream": lambda stream: contextlib.nullcontext(),
        "current_device": lambda: 0,
        "current_stream": lambda device=None: torch.Stream(device="tpu"),
        "default_generators": (generator,),
        "device": lambda device: torch.accelerator.device_index(0),
        "device_count": lambda: 1,
        "distributed": _distributed(),
        "get_amp_supported_dtype": lambda: [torch.bfloat16, torch.float16, torch.float32],
        "get_rng_state": lambda device="tpu": generator.get_state(),
        "initial_seed": generator.initial_seed,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "manual_seed": generator.manual_seed,
        "manual_seed_all": lambda seed: generator.manual_seed(seed) and None,
        "set_device": _set_device,
        "set_rng_state": lambda state, device="tpu": generator.set_state(state) and None,
        "set_stream": lambda stream: None,
        "synchronize": lambda device=None: None,
    }
    module = types.ModuleType("torch.tpu")
    for name, member in members.items():
        setattr(module, name, _internal(name, member) if name in INTERNAL else member)
    return module


def _internal(name: str, function: Any) -> Any:
    def guarded(*arguments: Any, **options: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__") or ""
        if caller.partition(".")[0] != "torch":
            raise RuntimeError(REFUSAL.format(name=name))
        return function(*arguments, **options)

    return guarded


def _set_device(device: Any) -> None:
    index = device if isinstance(device, int) else torch.device(device).index
    if index not in (None, 0):
        raise ValueError(f"Cannot set TPU device to index {index}, current process is bound to device index 0.")


def _distributed() -> types.ModuleType:
    module = types.ModuleType("torch.tpu.distributed")

    def set_tpu_launch_env(*, nnodes: int | None = None, nproc_per_node: int | None = None) -> None:
        count = nproc_per_node or 1
        if count not in TOPOLOGIES:
            raise RuntimeError(f"No TPU topology found for count: {count}")
        addresses = ",".join(f"localhost:{8070 + number}" for number in range(count))
        for name, value in zip(LAUNCH_VARIABLES, (addresses, TOPOLOGIES[count], "1"), strict=True):
            os.environ.setdefault(name, value)

    module.set_tpu_launch_env = set_tpu_launch_env
    sys.modules[module.__name__] = module
    return module
