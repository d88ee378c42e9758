"""State that is spread over the processes, in the format of torch.distributed.checkpoint (DCP).

Every process writes its own shards, and any number of processes reads them again, each the parts that it needs now. The
layout is Accelerate's: `pytorch_model_fsdp_0/` with {"model": ...} and `optimizer_0/` with {"optimizer": ...}.
PyTorch's modules are imported where they are used, since they cost more than half a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer

from runtime.checkpoints.layout import SHARDED_MODEL, SHARDED_OPTIMIZER
from runtime.checkpoints.snapshot import Part
from runtime.errors import LoadError, SaveError


@dataclass(frozen=True, slots=True)
class Shards(Part):
    """A folder of a checkpoint that all processes write together."""

    rank: int = 0
    group: Any = None  # the processes that write; None: one

    def into(self, folder: Path) -> list[Path]:
        dcp = _dcp()
        place = folder / self.name
        writer = dcp.FileSystemWriter(place, sync_files=False)  # that is done for every file of a checkpoint
        try:
            dcp.save(self.content, storage_writer=writer, process_group=self.group, no_dist=self.group is None)
        except dcp.api.CheckpointException as error:  # no Exception, but told to all processes
            raise SaveError(f"{self.what}: {_first(error)}") from error
        return sorted(place.glob(f"__{self.rank}_*"))


class Sharded:
    """A model whose parameters are spread over processes, and its optimizers."""

    def __init__(self, model: nn.Module, optimizers: Sequence[Optimizer], index: int, group: Any) -> None:
        self._model = model
        self._optimizers = list(optimizers)
        self._index = index
        self._group = group

    def parts(self, rank: int) -> list[Part]:
        """What is written; every process must ask."""
        model, optimizer = self._states()
        name = SHARDED_MODEL.format(self._index)
        parts: list[Part] = [Shards(name, {"model": model}, f"model {self._index}", rank=rank, group=self._group)]
        if self._optimizers:
            name = SHARDED_OPTIMIZER.format(self._index)
            content = {"optimizer": optimizer}
            parts.append(Shards(name, content, f"the optimizer of model {self._index}", rank=rank, group=self._group))
        return parts

    def load_from(self, folder: Path) -> None:
        """Load what any number of processes have saved; every process must ask.

        Raises:
            LoadError: it is the state of another model.
        """
        from torch.distributed.checkpoint.state_dict import set_state_dict

        model, optimizer = self._states()
        self._read({"model": model}, folder / SHARDED_MODEL.format(self._index))
        if self._optimizers:
            self._read({"optimizer": optimizer}, folder / SHARDED_OPTIMIZER.format(self._index))
        with _uncovered(self._optimizers):
            set_state_dict(self._model, self._optimizers, model_state_dict=model, optim_state_dict=optimizer or {})

    def _states(self) -> tuple[dict[str, Any], dict[str, Any]]:
        from torch.distributed.checkpoint.state_dict import get_state_dict

        with _uncovered(self._optimizers):
            model, optimizer = get_state_dict(self._model, self._optimizers)
        return model, optimizer

    def _read(self, state: dict[str, Any], folder: Path) -> None:
        if not folder.is_dir():
            raise LoadError(
                f"checkpoint {folder.parent} has no {folder.name}. Prepare the same objects, in the same order, as the "
                "program that saved it."
            )
        dcp = _dcp()
        reader = dcp.FileSystemReader(folder)
        try:
            dcp.load(state, storage_reader=reader, process_group=self._group, no_dist=self._group is None)
        except dcp.api.CheckpointException as error:
            raise LoadError(f"{folder} is not the state of model {self._index}: {_first(error)}") from error


def _dcp() -> Any:
    return import_module("torch.distributed.checkpoint")


def _first(error: Any) -> str:
    """What went wrong on the first of the processes that failed."""
    rank, (problem, _) = min(error.failures.items())
    return f"rank {rank}: {type(problem).__name__}: {problem}"


@contextmanager
def _uncovered(optimizers: Sequence[Optimizer]) -> Iterator[None]:
    """A context in which optimizers have their class's `step` and `zero_grad`, not those that hold steps back.

    PyTorch lets an optimizer without state step once, to learn what its state consists of.
    """
    covered: list[tuple[Any, dict[str, Any]]] = [
        (o, {name: o.__dict__.pop(name) for name in ("step", "zero_grad") if name in o.__dict__}) for o in optimizers
    ]
    try:
        yield
    finally:
        for optimizer, own in covered:
            optimizer.__dict__.update(own)
