"""The keys of Accelerate's files that are no settings here: they change nothing, or ask for what is not here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.launch.readers import yes_or_no
from runtime.launch.spec import LaunchError


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file whose keys may be written with or without a prefix."""

    prefix: str
    is_kept: bool
    """Whether our names of the keys have the prefix."""

    def full_name(self, key: str) -> str:
        """Our name of a key."""
        bare = key.removeprefix(self.prefix)
        return f"{self.prefix}{bare}" if self.is_kept else bare

    def written(self, name: str) -> str:
        """The key as Accelerate writes it, of our name."""
        return name if self.is_kept else f"{self.prefix}{name}"


@dataclass(frozen=True, slots=True)
class Refused:
    """What is refused where it is switched on."""

    is_on: Callable[[Any], bool]
    way_out: str


def _on(value: Any) -> bool:
    """Whether something that stands in a file is switched on."""
    try:
        return value is not None and yes_or_no(value)
    except LaunchError:
        return bool(value)


def _several(value: Any) -> bool:
    """Whether more than one process is asked for."""
    return str(value) not in {"1", "None"}


def _sagemaker(value: Any) -> bool:
    return "SAGEMAKER" in str(value).upper()


SECTIONS: Mapping[str, Section] = {
    "fsdp_config": Section("fsdp_", is_kept=True),
    "parallelism_config": Section("parallelism_config_", is_kept=False),
    "dynamo_config": Section("dynamo_", is_kept=True),
    "mpirun_config": Section("mpirun_", is_kept=True),
}

LEGACY: Mapping[str, str] = {  # of the oldest files → its place now
    "fp16": "mixed_precision",
    "dynamo_backend": "dynamo_config.dynamo_backend",
}

_UNKNOWN_DEVICES = ("MULTI_HPU", "MULTI_MLU", "MULTI_MUSA", "MULTI_NEURON", "MULTI_NPU", "MULTI_SDAA")

#: What a type means for our settings, or the way out where the engine is not here.
DISTRIBUTED_TYPES: Mapping[str, Mapping[str, Any] | str] = {
    "NO": {},
    "MULTI_CPU": {"cpu": True},
    "MULTI_GPU": {},
    "MULTI_XPU": {},
    "XLA": {},
    "TPU": {},
    "FSDP": {"use_fsdp": True},
    "DEEPSPEED": "ZeRO's stages are FSDP here: write distributed_type: FSDP",
    "MEGATRON_LM": "write distributed_type: FSDP, which divides models over the processes, too",
    **dict.fromkeys(_UNKNOWN_DEVICES, "its devices are not known; leave the key out to run on what is found"),
}

_POD = "start `runtime launch` on every machine of the pod instead"
_TENSORS = "give these processes to dp_shard_size"

REFUSED: Mapping[str, Refused] = {
    "compute_environment": Refused(_sagemaker, "start `runtime launch` on the machine itself"),
    "tpu_use_cluster": Refused(_on, _POD),
    "mpirun_config.mpirun_hostfile": Refused(_on, "start with mpirun yourself: mpirun ... runtime launch train.py"),
    "parallelism_config.tp_size": Refused(_several, _TENSORS),
    "parallelism_config.cp_size": Refused(_several, _TENSORS),
    "parallelism_config.sp_size": Refused(_several, _TENSORS),
}

_START_ONE = "`runtime launch` is started on every machine"
_NOT_CHOSEN = "only distributed_type chooses an engine, and it does not name this one"

IDLE: Mapping[str, str] = {  # key → why it changes nothing
    "compute_environment": "what runs here is this machine",
    "same_network": "machines always meet at main_process_ip",
    "main_training_function": "the script is run whole, as __main__",
    "downcast_bf16": "mixed_precision: bf16 says all that is needed",
    "deepspeed_config": _NOT_CHOSEN,
    "megatron_lm_config": _NOT_CHOSEN,
    "fp8_config": "mixed_precision does not ask for fp8",
    "ipex_config": "PyTorch itself runs on these devices",
    "use_xpu": "the devices that are there are found",
    "tpu_use_cluster": _START_ONE,
    "tpu_name": _START_ONE,
    "tpu_zone": _START_ONE,
    "tpu_use_sudo": _START_ONE,
    "tpu_vm": _START_ONE,
    "tpu_env": _START_ONE,
    "commands": _START_ONE,
    "command_file": _START_ONE,
    "mpirun_config.mpirun_hostfile": "mpirun is started by the user",
    "mpirun_config.mpirun_ccl": "mpirun is started by the user",
    "fsdp_config.fsdp_backward_prefetch_policy": "FSDP2 prefetches by itself",
    "parallelism_config.tp_size": "one process is none beside itself",
    "parallelism_config.cp_size": "one process is none beside itself",
    "parallelism_config.sp_size": "one process is none beside itself",
    "parallelism_config.cp_comm_strategy": "there is no context parallelism here",
    "parallelism_config.cp_backend": "there is no context parallelism here",
    "parallelism_config.sp_backend": "there is no sequence parallelism here",
    "parallelism_config.sp_seq_length": "there is no sequence parallelism here",
    "parallelism_config.sp_seq_length_is_variable": "there is no sequence parallelism here",
    "parallelism_config.sp_attn_implementation": "there is no sequence parallelism here",
}
