"""Loading a checkpoint whose files were found good: nothing is changed before all that is needed was found in it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from runtime.checkpoints import randomness
from runtime.checkpoints.layout import (
    LOADER,
    MODEL,
    OPTIMIZER,
    SAFE_MODEL,
    SCALER,
    SCHEDULER,
    custom,
    is_custom,
    numbered,
    random_states,
)  # fmt: skip
from runtime.checkpoints.sharded import Sharded
from runtime.devices import Device
from runtime.errors import LoadError
from runtime.seed import set_seed
from runtime.strategies import Strategy, unwrapped
from runtime.world import World

_WRAPPERS = ("module.", "_orig_mod.")  # what wrappers put before the names of a model


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The objects whose state is loaded, in the order that they were prepared or registered in."""

    items: Mapping[str, Any]  # what was read, by the names of the files
    models: list[nn.Module]
    optimizers: list[Any]
    sharded: list[Sharded]  # models and optimizers whose state is in shards
    schedulers: list[Any]
    loaders: list[Any]
    customs: list[Any]
    scaler: Any
    device: Device
    world: World
    strategy: Strategy
    is_prepared: bool = True  # whether there is a model, also one that a hook loads
    processes: int | None = None  # that saved; None: not known, since another library has
    model_options: Mapping[str, Any] = field(default_factory=dict)  # of Module.load_state_dict

    def load_from(self, folder: Path) -> None:
        """Load all of it.

        Raises:
            LoadError: the checkpoint was made by a program that prepared or registered other objects.
        """
        self._refuse_too_early(folder)
        weights = [self._weights(folder, index) for index in range(len(self.models))]
        optimizers = self._objects(folder, OPTIMIZER, len(self.optimizers), "optimizers")
        schedulers = self._objects(folder, SCHEDULER, len(self.schedulers), "schedulers")
        customs = self._customs(folder)
        scaler = self._scaler(folder)
        positions = self._positions()
        states, seed = self._random_states(folder)
        for loader, position in positions:  # first, because they refuse those of other data
            loader.load_state_dict(position)
        for index, (model, state) in enumerate(zip(self.models, weights, strict=True)):
            self._load_model(folder, index, model, state)
        for optimizer, state in zip(self.optimizers, optimizers, strict=True):
            self.strategy.load_optimizer_state(optimizer, state)
        for item in self.sharded:
            item.load_from(folder)
        for item, state in [
            *zip(self.schedulers, schedulers, strict=True),
            *zip(self.customs, customs, strict=True),
            *([(self.scaler, scaler)] if scaler else []),
        ]:
            item.load_state_dict(state)
        if states is not None:
            randomness.restore(states, self.device)
        elif seed is not None:
            set_seed(seed)

    def _refuse_too_early(self, folder: Path) -> None:
        prepared = (self.is_prepared, self.optimizers, self.sharded, self.schedulers)
        if not any(prepared) and any(name in self.items for name in (SAFE_MODEL, MODEL, OPTIMIZER)):
            raise LoadError(
                f"checkpoint {folder} holds models or optimizers, and none is prepared: nothing of them would be "
                "loaded. Call load_state() after prepare()."
            )

    def _weights(self, folder: Path, index: int) -> dict[str, Any]:
        for name in (numbered(SAFE_MODEL, index), numbered(MODEL, index)):
            if name in self.items:
                weights: dict[str, Any] = self.items[name]
                return weights
        raise self._missing(folder, numbered(SAFE_MODEL, index), len(self.models), "models")

    def _load_model(self, folder: Path, index: int, model: nn.Module, state: dict[str, Any]) -> None:
        inner = unwrapped(model, keep_torch_compile=False)
        fitting = _with_aliases(_plain(state, inner), inner)
        try:
            self.strategy.load_state_dict(inner, fitting, **self.model_options)
        except RuntimeError as error:
            told = " ".join(str(error).split())
            raise LoadError(f"checkpoint {folder}: the weights are not those of model {index}: {told}") from error

    def _objects(self, folder: Path, name: str, count: int, kind: str) -> list[Any]:
        names = [numbered(name, index) for index in range(count)]
        for wanted in names:
            if wanted not in self.items:
                raise self._missing(folder, wanted, count, kind)
        return [self.items[wanted] for wanted in names]

    def _missing(self, folder: Path, name: str, count: int, kind: str) -> LoadError:
        return LoadError(
            f"checkpoint {folder} has no {name}, and {count} {kind} are prepared. "
            "Prepare the same objects, in the same order, as the program that saved it."
        )

    def _customs(self, folder: Path) -> list[Any]:
        found, wanted = sum(map(is_custom, self.items)), len(self.customs)
        if found != wanted:
            raise LoadError(
                f"checkpoint {folder} holds {found} registered objects, and {wanted} are registered. "
                "Register the same objects, in the same order, before load_state()."
            )
        return [self.items[custom(index)] for index in range(wanted)]

    def _scaler(self, folder: Path) -> Any:
        if self.scaler is None or not self.scaler.is_enabled():
            return None
        if SCALER not in self.items:
            warnings.warn(f"checkpoint {folder} has no gradient scaler: the scale starts anew.", stacklevel=5)
            return None
        return self.items[SCALER]

    def _positions(self) -> list[tuple[Any, Any]]:
        """Each loader with its saved position; none of another library, which means something else by a position."""
        if self.processes is None:
            return []
        names = [numbered(LOADER, index) for index in range(len(self.loaders))]
        return [(loader, self.items[n]) for n, loader in zip(names, self.loaders, strict=True) if n in self.items]

    def _random_states(self, folder: Path) -> tuple[Any, int | None]:
        """This process's states; or, if it was not there, a seed of its own."""
        before = self.processes if self.processes is not None else len(list(folder.glob("random_states_*.pkl")))
        if before != self.world.size and self.world.rank == 0:
            warnings.warn(
                f"checkpoint {folder} was saved by {before} processes and is loaded by {self.world.size}: "
                + (f"processes from rank {before} on get" if before < self.world.size else "no process gets")
                + " random numbers derived from those of rank 0.",
                stacklevel=5,
            )
        own, first = random_states(self.world.rank), random_states(0)
        if own in self.items:
            return self.items[own], None
        if first in self.items:
            return None, randomness.derived(self.items[first], self.world.rank)
        return None, None


def _plain(state: dict[str, Any], model: nn.Module) -> dict[str, Any]:
    """`state` without the prefixes of wrappers in its keys, which some versions of Accelerate keep."""
    own = model.state_dict().keys()
    for prefix in _WRAPPERS:
        if state and all(name.startswith(prefix) for name in state) and not own & state.keys():
            state = {name[len(prefix) :]: value for name, value in state.items()}
    return state


def _with_aliases(state: dict[str, Any], model: nn.Module) -> dict[str, Any]:
    """`state` with the names of tied weights that were left out, because what is shared was written once."""
    own = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    names: dict[int, list[str]] = {}
    for name, value in own:
        names.setdefault(id(value), []).append(name)
    result = dict(state)
    for group in names.values():
        present = next((name for name in group if name in state), None)
        if present is not None:
            result.update({name: state[present] for name in group if name not in state})
    return result
