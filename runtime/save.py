"""Files that are either whole or not there: written aside in the same folder, then renamed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from runtime.checkpoints.formats import fits_safetensors, without_aliases, write_safetensors
from runtime.checkpoints.layout import MODEL, SAFE_MODEL
from runtime.checkpoints.sink import Sink, to_disk
from runtime.devices import portable
from runtime.errors import SaveError

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def save(item: Any, target: str | os.PathLike[str] | IO[bytes], safe: bool = False) -> None:
    """Write `item` in the format of `torch.save`, or a dictionary of tensors as safetensors.

    A path is replaced in one step, so a crash leaves the old file or the new one. An open file is written directly.

    Raises:
        SaveError: the folder is missing, or safetensors is asked for what it cannot hold.
    """
    item = portable(item)
    if not isinstance(target, (str, os.PathLike)):
        if safe:
            _check_safetensors(item)
            write_safetensors(target, item)
        else:
            torch.save(item, target)
        return
    path = Path(os.path.realpath(os.fspath(target)))  # through a symbolic link, as open() would
    if not path.parent.is_dir():
        raise SaveError(f"{path.parent} is not a folder. Create it first: os.makedirs({str(path.parent)!r}).")
    _replace_all({path: item}, _as_safetensors if safe else torch.save)


def _replace_all(items: dict[Path, Any], write: Callable[[Any, Path], None]) -> None:
    """Write files of one folder, and let them take the places of those that are there when all are on the disk."""
    asides = {path: path.with_name(f".{path.name}.{os.getpid()}.part") for path in items}
    try:
        for path, aside in asides.items():
            write(items[path], aside)
            to_disk(aside)
        for path, aside in asides.items():
            os.replace(aside, path)
    except BaseException:
        for aside in asides.values():
            aside.unlink(missing_ok=True)
        raise
    for folder in {path.parent for path in items}:
        to_disk(folder)


def _check_safetensors(item: Any) -> None:
    if not isinstance(item, dict) or not fits_safetensors(item):
        raise SaveError(
            "safe_serialization=True writes dictionaries of dense tensors, and this holds something else. "
            "Pass safe_serialization=False."
        )


def _as_safetensors(item: Any, path: Path) -> None:
    _check_safetensors(item)
    with Sink(path) as sink:
        write_safetensors(sink, item)


def _as_text(item: str, path: Path) -> None:
    with Sink(path) as sink:
        sink.write(item.encode())


def save_weights(state: dict[str, Any], folder: str | os.PathLike[str], max_shard_size: int | str, safe: bool) -> None:
    """Write a model's state dictionary into `folder`, as `model.safetensors` or `pytorch_model.bin`.

    What is larger than `max_shard_size` goes into several files, model-00001-of-00003.safetensors, and an index that
    says where each name is; files of an earlier save that are not part of it are removed.

    Raises:
        SaveError: `folder` is a file, or safetensors is asked for what it cannot hold.
    """
    if os.path.isfile(folder):
        raise SaveError(f"{os.fspath(folder)} is a file. Pass a folder.")
    limit, state = in_bytes(max_shard_size), portable(state)
    os.makedirs(folder, exist_ok=True)
    place, name = Path(os.path.realpath(folder)), SAFE_MODEL if safe else MODEL
    shards = _shards(state, limit, keeps_aliases=not safe)
    files = {_shard_name(name, index, len(shards)): shard for index, shard in enumerate(shards)}
    _replace_all({place / file: shard for file, shard in files.items()}, _as_safetensors if safe else torch.save)
    index_name = f"{name}.index.json"
    if len(shards) > 1:
        total = sum(_size_of(value) for value in _once(state).values())
        index = {
            "metadata": {"total_size": total},
            "weight_map": {key: file for file, shard in files.items() for key in shard},
        }
        _replace_all({place / index_name: json.dumps(index, indent=2, sort_keys=True) + "\n"}, _as_text)
    stem, _, ending = name.partition(".")
    stale = re.compile(rf"{re.escape(stem)}(-\d{{5}}-of-\d{{5}})?\.{re.escape(ending)}(\.index\.json)?")
    kept = {*files, *([index_name] if len(shards) > 1 else [])}
    for path in place.iterdir():
        if stale.fullmatch(path.name) and path.name not in kept:
            path.unlink()


def _shard_name(name: str, index: int, count: int) -> str:
    stem, _, ending = name.partition(".")
    return name if count == 1 else f"{stem}-{index + 1:05d}-of-{count:05d}.{ending}"


def _shards(state: dict[str, Any], limit: int, *, keeps_aliases: bool) -> list[dict[str, Any]]:
    """The state in parts of at most `limit` bytes, in its order; a larger tensor is a part of its own.

    What is stored once stays in one part, under all its names or under the first.
    """
    _, aliases = without_aliases({name: value for name, value in state.items() if isinstance(value, Tensor)})
    shards: list[dict[str, Any]] = [{}]
    used = 0
    homes: dict[str, dict[str, Any]] = {}
    for name, value in state.items():
        if name in aliases:
            if keeps_aliases:
                homes[aliases[name]][name] = value
            continue
        size = _size_of(value)
        if shards[-1] and used + size > limit:
            shards.append({})
            used = 0
        shards[-1][name] = value
        homes[name] = shards[-1]
        used += size
    return shards


def _once(state: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors, each under one name."""
    return without_aliases({name: value for name, value in state.items() if isinstance(value, Tensor)})[0]


def _size_of(value: Any) -> int:
    return value.numel() * value.element_size() if isinstance(value, Tensor) else 0


def in_bytes(size: int | str) -> int:
    """`"10GB"` in bytes.

    Raises:
        SaveError: the text is not a number with a unit.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?B)?", str(size).strip().upper())
    count = 0 if match is None else int(float(match[1]) * _UNITS[match[2] or "B"])
    if count < 1:
        raise SaveError(f"max_shard_size={size!r} is not understood. Write a number of bytes, or text like '10GB'.")
    return count
