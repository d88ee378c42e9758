"""What is written into a checkpoint: parts, each a file with a content and a format.

A part of a save that goes on behind the training is copied first: into buffers that are kept from one save to the next,
since memory that is touched for the first time costs several times the copy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from runtime.checkpoints import randomness
from runtime.checkpoints.formats import check_readable, fits_safetensors, write_object, write_safetensors
from runtime.checkpoints.layout import (
    LOADER,
    MODEL,
    OPTIMIZER,
    SAFE_MODEL,
    SCALER,
    SCHEDULER,
    custom,
    numbered,
    random_states,
)  # fmt: skip
from runtime.checkpoints.sink import Sink
from runtime.devices import Device, in_host_memory, kind_of, portable
from runtime.strategies.base import is_distributed_tensor
from runtime.world import World


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a checkpoint."""

    name: str
    content: Any
    what: str  # for messages
    write: Callable[[Sink, Any], None] = write_object

    def into(self, folder: Path) -> list[Path]:
        """Write it, and give back the files that are this process's; they need not be on the disk yet.

        Raises:
            OSError: the disk is full, or the folder is gone.
            SaveError: it could not be read again.
        """
        path = folder / self.name
        with Sink(path) as sink:
            self.write(sink, self.content)
        if self.write is write_object:
            check_readable(path, self.what)
        return [path]


def model_part(index: int, weights: dict[str, Any], safe: bool) -> Part:
    """A model's weights; in PyTorch's format where asked for, or where safetensors cannot hold a value."""
    what = f"model {index}"
    if safe and fits_safetensors(weights):
        return Part(numbered(SAFE_MODEL, index), weights, what, write_safetensors)
    return Part(numbered(MODEL, index), weights, what)


class Staging:
    """Copies of states, in memory that is used again by the next save."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], Tensor] = {}
        self._used: dict[tuple[Any, ...], Tensor] = {}
        self._under_way: dict[str, Device] = {}  # kinds of device that still copy

    def copied(self, parts: list[Part]) -> list[Part]:
        """The parts with copies of their contents, which the training does not change."""
        self._used = {}
        result = [replace(part, content=self._copy(part.content, (part.name,))) for part in parts]
        self._kept = self._used  # what was not used again is given back
        while self._under_way:
            self._under_way.popitem()[1].synchronize()
        return result

    def _copy(self, item: Any, place: tuple[Any, ...]) -> Any:
        if isinstance(item, Tensor):
            return self._tensor(item.detach(), place)
        if isinstance(item, dict):
            return {key: self._copy(value, (*place, key)) for key, value in item.items()}
        if type(item) in (list, tuple):
            return type(item)(self._copy(value, (*place, index)) for index, value in enumerate(item))
        return copy.deepcopy(item)

    def _tensor(self, tensor: Tensor, place: tuple[Any, ...]) -> Tensor:
        if is_distributed_tensor(tensor):
            return self._shard(tensor, place)
        if tensor.layout is not torch.strided:
            return tensor.cpu().clone()
        buffer, kind = self._kept.get(place), kind_of(tensor.device)
        if buffer is None or buffer.shape != tensor.shape or buffer.dtype is not tensor.dtype:
            buffer = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=kind.pins)
        self._used[place] = buffer
        if kind.pins:
            self._under_way[kind.kind.name] = kind
        return buffer.copy_(tensor, non_blocking=kind.pins)

    def _shard(self, tensor: Any, place: tuple[Any, ...]) -> Tensor:
        """A copy of this process's part of a distributed tensor; it stays on its device, where that has own memory."""
        local = tensor.to_local()
        copied = self._tensor(local, place) if in_host_memory(local.device) else local.clone()
        result: Tensor = type(tensor).from_local(
            copied, tensor.device_mesh, tensor.placements, run_check=False, shape=tensor.shape, stride=tensor.stride()
        )
        return result


def collected(
    *,
    weights: list[dict[str, Any]],
    safe: bool,
    optimizers: list[dict[str, Any]],
    schedulers: list[Any],
    scaler: Any,
    positions: list[dict[str, Any]],
    customs: list[Any],
    device: Device,
    world: World,
    is_leader: bool,
    shards: list[Part],
) -> list[Part]:
    """The parts of one process: its random numbers, and on a leader all that is the same everywhere."""
    # What all write together comes first, in the same order everywhere.
    own = [*shards, Part(random_states(world.rank), randomness.states(device), "the random number generators")]
    if not is_leader:
        return own
    parts = [model_part(index, portable(state), safe) for index, state in enumerate(weights)]
    parts += [Part(numbered(OPTIMIZER, i), state, f"optimizer {i}") for i, state in enumerate(optimizers)]
    parts += [Part(numbered(SCHEDULER, i), s.state_dict(), f"scheduler {i}") for i, s in enumerate(schedulers)]
    parts += [Part(numbered(LOADER, i), p, f"data loader {i}") for i, p in enumerate(positions)]
    if scaler is not None:
        parts.append(Part(SCALER, scaler.state_dict(), "the gradient scaler"))
    parts += [Part(custom(i), c.state_dict(), f"the registered {type(c).__name__}") for i, c in enumerate(customs)]
    return own + [replace(part, content=portable(part.content)) for part in parts]
