"""Files that are either whole or not there: written aside in the same folder, then renamed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from runtime.errors import SaveError

WEIGHTS = "pytorch_model.bin"
SAFE_WEIGHTS = "model.safetensors"
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def save(item: Any, target: str | os.PathLike[str] | IO[bytes], safe: bool = False) -> None:
    """Write `item` in the format of `torch.save`, or a dictionary of tensors as safetensors.

    A path is replaced in one step, so a crash leaves the old file or the new one. An open file is written directly.

    Raises:
        SaveError: the folder is missing, or safetensors is asked for and not installed.
    """
    if hasattr(target, "write"):
        torch.save(item, target)
        return
    path = Path(os.path.realpath(os.fspath(target)))  # through a symbolic link, as open() would
    if not path.parent.is_dir():
        raise SaveError(f"{path.parent} is not a folder. Create it first: os.makedirs({str(path.parent)!r}).")
    write = _safetensors_writer() if safe else torch.save
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(item, aside)
        _flush(aside)
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    _flush(path.parent)


def _flush(path: Path) -> None:
    """Wait until the disk has the file, or the folder's list of names."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open folders
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _safetensors_writer() -> Callable[[Any, Path], None]:
    try:
        save_file = import_module("safetensors.torch").save_file  # here, because the runtime does not depend on it
    except ImportError as error:
        raise SaveError(
            "safe_serialization=True needs the package safetensors, which is not installed. "
            "Install it (pip install safetensors), or pass safe_serialization=False."
        ) from error

    def write(item: Any, path: Path) -> None:
        distinct, aliases = without_aliases(item)
        save_file({name: t.contiguous() for name, t in distinct.items()}, path, {"format": "pt", **aliases})

    return write


def without_aliases(state: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """`state` with one name for each tensor, as safetensors wants it, and the name kept for each left out."""
    kept: dict[tuple[Any, ...], str] = {}
    aliases: dict[str, str] = {}
    for name, tensor in state.items():
        place = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and place in kept:
            aliases[name] = kept[place]
        else:
            kept[(*place, name) if not tensor.numel() else place] = name
    return {name: state[name] for name in state if name not in aliases}, aliases


def save_weights(state: dict[str, Any], folder: str | os.PathLike[str], max_shard_size: int | str, safe: bool) -> None:
    """Write a model's state dictionary into `folder`, as `model.safetensors` or `pytorch_model.bin`.

    Raises:
        SaveError: it is larger than `max_shard_size` (one file is written, not several), or `folder` is a file.
    """
    size, limit = sum(_size_of(value) for value in state.values()), in_bytes(max_shard_size)
    if size > limit:
        raise SaveError(
            f"the weights take {size} bytes, more than max_shard_size={max_shard_size!r}, and are written into one "
            f"file. Pass max_shard_size={size} or more."
        )
    if os.path.isfile(folder):
        raise SaveError(f"{os.fspath(folder)} is a file. Pass a folder.")
    os.makedirs(folder, exist_ok=True)
    save(state, os.path.join(folder, SAFE_WEIGHTS if safe else WEIGHTS), safe)


def _size_of(value: Any) -> int:
    return value.numel() * value.element_size() if isinstance(value, Tensor) else 0


def in_bytes(size: int | str) -> int:
    """`"10GB"` in bytes.

    Raises:
        SaveError: the text is not a number with a unit.
    """
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"(\d+)\s*([KMGT]?I?B)", size.strip().upper())
    if match is None or match[2] not in _UNITS:
        raise SaveError(f"max_shard_size={size!r} is not understood. Write a number of bytes, or text like '10GB'.")
    return int(match[1]) * _UNITS[match[2]]
