"""What is saved: keys, classes, shapes and dtypes, and whether what another run has saved loads here, too."""

from __future__ import annotations

import copy
import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.parallel import DataParallel, DistributedDataParallel

from migrate.verify.digest import digest
from migrate.verify.order import PARALLEL, Order
from migrate.verify.recorder.fence import Fence
from migrate.verify.recorder.journal import Journal
from migrate.verify.recorder.sums import checksum

_PREFIX = "module."
_WRAPPERS = (DataParallel, DistributedDataParallel)
"""Those of an original. A converted program has no business with the keys of DistributedDataParallel."""


class Checkpoints:
    """The observer of `torch.save`."""

    def __init__(self, journal: Journal, order: Order, fence: Fence) -> None:
        self._journal = journal
        self._order = order
        self._fence = fence
        self._tried: set[str] = set()

    def watch(self) -> None:
        """From now on."""
        run = torch.save

        def save(obj: Any, f: Any, *arguments: Any, **options: Any) -> None:
            name = f if isinstance(f, str | os.PathLike) else getattr(f, "name", "")
            path = os.path.abspath(os.fspath(name)) if isinstance(name, str | os.PathLike) and name else ""
            if isinstance(f, str | os.PathLike):
                self._fence.check(f)  # it is opened by C code
            shown = _unwrapped(obj, DataParallel if self._order.package else _WRAPPERS)
            content, is_unwrapped = described(shown), shown is not obj
            run(obj, f, *arguments, **options)
            stored = digest(path) if isinstance(f, str | os.PathLike) and os.path.isfile(path) else ""
            self._journal.write("saved", path=path, content=content, unwrapped=is_unwrapped, digest=stored)
            self._try_others(path, obj)

        torch.save = save

    def _try_others(self, path: str, own: Any) -> None:
        if not path.startswith(self._order.root + os.sep) or path in self._tried:
            return
        self._tried.add(path)
        for number, folder in enumerate(self._order.checkpoints):
            other = os.path.join(folder, os.path.relpath(path, self._order.root))
            if os.path.exists(other):
                self._journal.write("loaded", path=path, other=number, error=_error(own, other))


def described(item: Any) -> Any:
    """A tree of lists: what each part is, with a checksum or the value at its end."""
    if isinstance(item, torch.nn.Module):
        return ["model", type(item).__name__, described(item.state_dict())]
    if isinstance(item, torch.Tensor):
        return ["tensor", str(item.dtype), list(item.shape), checksum([item])]
    if isinstance(item, dict):
        return ["dict", {str(key): described(value) for key, value in item.items()}]
    if isinstance(item, list | tuple):
        return ["list", [described(value) for value in item]]
    if isinstance(item, bool | int | float | str | None):
        return ["value", type(item).__name__, repr(item)]
    return ["object", type(item).__name__]


def _error(own: Any, other: str) -> str:
    """Why what another run has saved does not load into the objects of this one; empty if it does."""
    before = set(sys.modules)
    try:
        theirs = torch.load(other, map_location="cpu", weights_only=False)
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        if needed := next((package for package in PARALLEL if package in loaded), None):
            return f"it needs the package {needed!r} to be read"
        for keys, state in _states(own):
            part = _part(theirs, keys)
            if (module := _module_of(state)) is not None:
                is_plain = part.keys() == _unwrapped(state, _WRAPPERS).keys() != state.keys()
                _load(module.get_submodule(_PREFIX[:-1]) if is_plain else module, part)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return f"{type(error).__name__}: {error}"
    return ""


def _load(module: torch.nn.Module, state: dict[Any, Any]) -> None:
    """Load a state into a copy of a living model; into the model itself, for a moment, where it has no copy.

    A layer that computes its weights (an old spectral norm) keeps tensors that PyTorch does not copy.
    """
    try:
        copied = copy.deepcopy(module)
    except RuntimeError:
        kept = copy.deepcopy(module.state_dict())
        try:
            module.load_state_dict(state)
        finally:
            module.load_state_dict(kept)
    else:
        copied.load_state_dict(state)


def _states(item: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], dict[Any, Any]]]:
    """The state dictionaries of models in what is saved, and the keys that lead to them."""
    if isinstance(item, torch.nn.Module):
        yield keys, item.state_dict()
    elif isinstance(item, dict):
        if item and all(isinstance(value, torch.Tensor) for value in item.values()):
            yield keys, item
        else:
            for key, value in item.items():
                yield from _states(value, (*keys, key))


def _unwrapped(item: Any, wrappers: Any) -> Any:
    """What is saved, with the keys of the model inside where one stands in a wrapper; else the item itself.

    A converted program writes these keys, whatever is around its model.
    """
    if not isinstance(item, dict):
        return item
    has_prefix = bool(item) and all(isinstance(key, str) and key.startswith(_PREFIX) for key in item)
    if has_prefix and isinstance(_module_of(item), wrappers):
        return {key.removeprefix(_PREFIX): value for key, value in item.items()}
    parts = {key: _unwrapped(value, wrappers) for key, value in item.items()}
    return parts if any(parts[key] is not value for key, value in item.items()) else item


def _part(item: Any, keys: tuple[Any, ...]) -> Any:
    for key in keys:
        item = item[key]
    return item.state_dict() if isinstance(item, torch.nn.Module) else item


def _module_of(state: dict[Any, Any]) -> torch.nn.Module | None:
    """A living model that has just these keys."""
    for thing in gc.get_objects():
        if isinstance(thing, torch.nn.Module) and _shapes(thing.state_dict()) == _shapes(state):
            return thing
    return None


def _shapes(state: dict[Any, Any]) -> dict[Any, Any]:
    return {key: getattr(value, "shape", None) for key, value in state.items()}
