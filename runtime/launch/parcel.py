"""A function on its way from a notebook into other processes, and what it returned on its way back.

Functions and classes of cells stand in no file that another process could import, so cloudpickle sends their code, and
what they use of the notebook's variables. What cannot be sent is named by the name that the notebook gave it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import io
import linecache
import os
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import PathFinder
from types import FunctionType, ModuleType
from typing import Any

from runtime.errors import ConfigurationError
from runtime.launch.standing import settings

_LARGEST_CELL = 2**20  # characters; more is no text that a person typed


def pack(function: Callable[..., Any], arguments: Sequence[Any], path: str) -> None:
    """Write the call to the file `path`, for `cell.py`.

    Raises:
        ConfigurationError: cloudpickle is not installed, or something that the function uses cannot be sent.
    """
    _cloudpickle()
    with _by_value(function):
        try:
            call = _dumps((function, tuple(arguments)))
        except Exception as error:  # noqa: BLE001  any class may raise what it likes
            raise ConfigurationError(_unsendable(function, arguments, error)) from None
    contents = {"path": sys.path, "argv": sys.argv, "sources": list(_cells()), "call": call}
    contents |= {"random": _random(), "settings": settings()}
    with open(path, "wb") as file:
        pickle.dump(contents, file)


def _random() -> list[tuple[str, Any]]:
    """Where random numbers stand, of the libraries that draw them: each process goes on there, as a fork would."""
    found: list[tuple[str, Any]] = [("random", random.getstate())]
    if (numpy := sys.modules.get("numpy")) is not None:
        found.append(("numpy", numpy.random.get_state()))
    if (torch := sys.modules.get("torch")) is not None:
        found.append(("torch", (torch.initial_seed(), torch.get_rng_state().numpy().tobytes())))
    return found


def go_on(states: Sequence[tuple[str, Any]]) -> None:
    """Draw random numbers from where another process stood."""
    for library, state in states:
        if library == "random":
            random.setstate(state)
        elif library == "numpy":
            import numpy as np  # late: only where the notebook has it

            np.random.set_state(state)  # noqa: NPY002  the state of what scripts draw from
        else:
            import torch

            seed, numbers = state
            torch.manual_seed(seed)  # also those of devices, which are seeded when they are first used
            torch.set_rng_state(torch.frombuffer(bytearray(numbers), dtype=torch.uint8))


@dataclass(frozen=True, slots=True)
class Result:
    """What comes back from rank 0: None for what cannot be sent, why, and where its random numbers stand."""

    value: Any
    missing: str = ""
    random: Sequence[tuple[str, Any]] = ()


def send_back(value: Any, path: str) -> None:
    """Write what the function returned to the file `path`; the training must not fail for what cannot be sent."""
    content, missing = _sendable(value)
    if missing and isinstance(value, tuple) and len(value) > 1:
        parts = [(part, *_sendable(part)) for part in value]
        content, _ = _sendable(tuple(None if why else part for part, _, why in parts))
        missing = "; ".join(f"element {number}, {why}" for number, (_, _, why) in enumerate(parts, 1) if why)
    with open(f"{path}.part", "wb") as file:
        pickle.dump((content, missing, _random()), file)
    os.replace(f"{path}.part", path)


def unpack(path: str) -> Result:
    """What `send_back` wrote; nothing where rank 0 is on another machine."""
    if not os.path.exists(path):
        return Result(None)
    with open(path, "rb") as file:
        content, missing, states = pickle.load(file)  # noqa: S301  written by our own process
    return Result(pickle.loads(content), missing, states)  # noqa: S301


def _sendable(value: Any) -> tuple[bytes, str]:
    """A value as bytes, those of None where it cannot be sent, and why it cannot."""
    buffer = io.BytesIO()
    try:
        _pickler(buffer, _for_the_notebook).dump(value)
    except Exception as error:  # noqa: BLE001  any class may raise what it likes
        return pickle.dumps(None), f"{type(value).__name__}: {error}"
    return buffer.getvalue(), ""


def _dumps(value: Any) -> bytes:
    buffer = io.BytesIO()
    _pickler(buffer, _refused).dump(value)
    return buffer.getvalue()


def _pickler(buffer: io.BytesIO, special: Callable[[Any], Any]) -> pickle.Pickler:
    """cloudpickle's, which asks `special` first: a reduced value, or NotImplemented for what is nothing special."""

    class Pickler(_cloudpickle().Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            reduced = _imported(value) if isinstance(value, ModuleType) else special(value)
            return super().reducer_override(value) if reduced is NotImplemented else reduced

    return Pickler(buffer)


def _imported(module: ModuleType) -> Any:
    """A module of a kind of its own, which pickle does not know: `torch.backends.cudnn`."""
    if type(module) is ModuleType:
        return NotImplemented
    name = next((name for name, each in list(sys.modules.items()) if each is module), None)
    return NotImplemented if name is None else (importlib.import_module, (name,))


def _refused(value: Any) -> Any:
    for is_wrong, message in _REFUSALS:
        if is_wrong(value):
            raise pickle.PicklingError(message)
    return NotImplemented


def _for_the_notebook(value: Any) -> Any:
    """A model that is wrapped for several processes comes back as the model itself: the notebook is one process."""
    wrapping = sys.modules.get("torch.nn.parallel.distributed")
    if wrapping is not None and isinstance(value, wrapping.DistributedDataParallel):
        return _itself, (value.module,)
    return _copied_to_the_cpu(value)


def _itself(value: Any) -> Any:
    return value


def _copied_to_the_cpu(value: Any) -> Any:
    """Loaded in the notebook, a tensor of a GPU would take the GPU from the next start."""
    return value.detach().cpu().__reduce_ex__(pickle.HIGHEST_PROTOCOL) if _is_on_a_device(value) else NotImplemented


def _is_on_a_device(value: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return False
    from runtime.devices import on_a_device  # late: imports torch, which is here where there is a tensor

    return on_a_device(value)


def _knows_its_processes(value: Any) -> bool:
    processes = sys.modules.get("runtime.processes")
    return processes is not None and isinstance(value, processes.Processes)


_REFUSALS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (_knows_its_processes, "it belongs to the notebook, which is one process, and each of the new ones needs its own"),
    (_is_on_a_device, "it lies on a device that the notebook's process has opened"),
)


def _cloudpickle() -> Any:
    try:
        import cloudpickle  # type: ignore[import-untyped]  # late: only notebooks need it
    except ImportError as error:
        raise ConfigurationError(
            "functions go from a notebook to several processes by the package cloudpickle, which is not installed. "
            "Run pip install cloudpickle, or use num_processes=1."
        ) from error
    return cloudpickle


@contextmanager
def _by_value(function: Callable[..., Any]) -> Iterator[None]:
    """Send the code of a module that a new process could not import by its name: one that was loaded by its path."""
    module = inspect.getmodule(function)
    if module is None or module.__name__ == "__main__" or _is_importable(module.__name__, module.__file__):
        yield
        return
    cloudpickle = _cloudpickle()
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _is_importable(name: str, file: str | None) -> bool:
    """Whether a fresh process with this import path would find the module, and in the same file."""
    spec, path, parts = None, None, name.split(".")
    for depth in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: depth + 1]), path)
        if spec is None:
            return file is None  # built in
        path = spec.submodule_search_locations
    return spec is not None and (file is None or spec.origin == file)


def _cells() -> Iterator[tuple[str, list[str]]]:
    """The text of cells, as Python keeps it for tracebacks: what is in no file."""
    for name, entry in list(linecache.cache.items()):
        if len(entry) == 4 and entry[0] < _LARGEST_CELL and not os.path.exists(name):
            yield name, entry[2]


def _unsendable(function: Callable[..., Any], arguments: Sequence[Any], error: Exception) -> str:
    """Names the variable that cannot be sent; the error alone where no single one is the reason."""
    named = [(f"argument {number} ({type(value).__name__})", value) for number, value in enumerate(arguments, 1)]
    culprit = next(_culprits({**dict(named), **_used(function)}, set()), None)
    if culprit is None:
        return f"{_name(function)} cannot be sent to other processes: {error}."
    return f"{_name(function)} uses {culprit}. Make it inside of the function."


def _culprits(values: Mapping[str, Any], seen: set[int]) -> Iterator[str]:
    for name, value in values.items():
        if id(value) in seen:
            continue
        seen.add(id(value))
        try:
            _dumps(value)
        except Exception as reason:  # noqa: BLE001  as above
            yield from _culprits(_used(value), seen)
            what = name if name.startswith("argument ") else f"{name!r} ({type(value).__name__})"
            yield f"{what}, which cannot be sent to other processes: {reason}"


def _used(function: Any) -> dict[str, Any]:
    """The variables of the notebook that a function names, and those of its closure."""
    inner = function.func if isinstance(function, functools.partial) else getattr(function, "__func__", function)
    if not isinstance(inner, FunctionType):
        return {}
    variables = inspect.getclosurevars(inner)
    return {**variables.globals, **variables.nonlocals}


def _name(function: Any) -> str:
    return f"{getattr(function, '__qualname__', type(function).__name__)}()"
