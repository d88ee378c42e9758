"""The names in a checkpoint. They are those of Accelerate, so each library finds the other's files."""

from __future__ import annotations

import re
from pathlib import Path

MANIFEST = "manifest.json"
FOLDER = "checkpoints"  # of automatically named ones, in the folder of the project
SCALER = "scaler.pt"
SAFE_MODEL = "model.safetensors"
MODEL = "pytorch_model.bin"
OPTIMIZER = "optimizer.bin"
SCHEDULER = "scheduler.bin"
LOADER = "dl_state_dict.bin"
SHARDED_MODEL = "pytorch_model_fsdp_{}"
SHARDED_OPTIMIZER = "optimizer_{}"
_WHOLE = re.compile(
    r"(model|pytorch_model|optimizer|scheduler|dl_state_dict)(_\d+)?\.(safetensors|bin)|scaler\.pt|custom_checkpoint_\d+\.pkl"
)
_OF_PARAMETERS = re.compile(r"(pytorch_model|optimizer)(_\d+)?\.bin")
_AUTOMATIC = re.compile(r"checkpoint_(\d+)")
_CUSTOM = re.compile(r"custom_checkpoint_\d+\.pkl")
_MARKS = (MANIFEST, SAFE_MODEL, MODEL, OPTIMIZER, "random_states_0.pkl", SHARDED_MODEL.format(0))


def numbered(name: str, index: int) -> str:
    """`optimizer.bin`, `optimizer_1.bin`, ..."""
    return name if index == 0 else name.replace(".", f"_{index}.")


def random_states(rank: int) -> str:
    """The file of a process's random number generators."""
    return f"random_states_{rank}.pkl"


def custom(index: int) -> str:
    """The file of a registered object."""
    return f"custom_checkpoint_{index}.pkl"


def is_custom(name: str) -> bool:
    """Whether a file is that of a registered object."""
    return _CUSTOM.fullmatch(name) is not None


def is_whole_state(name: str) -> bool:
    """Whether every process reads a file of this name."""
    return _WHOLE.fullmatch(name) is not None


def has_parameters(name: str) -> bool:
    """Whether a file has tensors that belong to parameters, and may lie on the device as these do."""
    return _OF_PARAMETERS.fullmatch(name) is not None


def is_state(name: str) -> bool:
    """Whether a file of this name is one that `save_state` writes."""
    return is_whole_state(name) or re.fullmatch(r"random_states_\d+\.pkl", name) is not None


def automatic(iteration: int) -> str:
    """The name of the folder of a checkpoint that is named by its number."""
    return f"checkpoint_{iteration}"


def automatic_number(name: str) -> int | None:
    """The number in a name that `automatic` gives; None for any other, such as that of a copy."""
    match = _AUTOMATIC.fullmatch(name)
    return None if match is None else int(match[1])


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder is a checkpoint, good or not, of this library or of Accelerate."""
    return any((folder / name).exists() for name in _MARKS)
