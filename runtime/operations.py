"""Functions that scripts call without an accelerator: on containers of tensors, between processes, on files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import torch
from torch import Tensor

from runtime import collectives
from runtime.devices import moved
from runtime.devices.generators import RNGType, state_of
from runtime.errors import ConfigurationError
from runtime.files import plain_model
from runtime.precision import in_float32
from runtime.processes import Processes
from runtime.save import save as write_file
from runtime.state import PartialState, joined_world
from runtime.tree import children, map_leaves, rebuilt

# between processes


def gather(tensor: Any) -> Any:
    """The tensors of all processes joined in rank order; the input itself on one process.

    See `Accelerator.gather` for shapes and errors.
    """
    return collectives.gather(joined_world(), tensor)


def gather_object(object: Any) -> Any:  # noqa: A002  the name in Accelerate
    """The objects of all processes in one list (lists are joined), pickled; the input itself on one process."""
    return collectives.gather_object(joined_world(), object)


def broadcast(tensor: Any, from_process: int = 0) -> Any:
    """One process's values in the tensors of every process, which are changed and given back.

    Raises:
        CollectiveError: they differ in number, dtype or shape.
        ConfigurationError: there is no process of that number.
    """
    return collectives.broadcast(joined_world(), tensor, from_process)


def broadcast_object_list(object_list: list[Any], from_process: int = 0) -> list[Any]:
    """One process's objects (pickled) in the list of every process: the list is changed, and given back.

    Raises:
        ConfigurationError: there is no process of that number.
    """
    return collectives.broadcast_object_list(joined_world(), object_list, from_process)


def reduce(tensor: Any, reduction: str = "mean", scale: float = 1.0) -> Any:
    """Tensors and numbers as their "mean", "sum" or "max" over the processes, times `scale`; "none": each its own.

    See `Accelerator.reduce` for types and errors; there the default is the sum.
    """
    return collectives.reduce(joined_world(), tensor, reduction, scale)


def pad_across_processes(tensor: Any, dim: int = 0, pad_index: float = 0, pad_first: bool = False) -> Any:
    """Tensors filled up along `dim` to the largest size of any process; see `Accelerator.pad_across_processes`."""
    return collectives.pad_across_processes(joined_world(), tensor, dim, pad_index, pad_first)


def copy_tensor_to_devices(tensor: Tensor | None = None) -> Tensor:
    """The main process's tensor on the device of every process; the others pass nothing.

    Raises:
        TypeError: the main process passes something else.
    """
    device = None if tensor is None else tensor.device
    told = collectives.broadcast_object(joined_world(), None if tensor is None else tensor.detach().cpu())
    if not isinstance(told, Tensor):
        raise TypeError(f"copy_tensor_to_devices takes a tensor on the main process, and got a {type(told).__name__}.")
    return told.to(device or PartialState().device)


def wait_for_everyone() -> None:
    """Return when every process has called this."""
    collectives.barrier(joined_world())


def synchronize_rng_states(rng_types: Sequence[str | RNGType], generator: torch.Generator | None = None) -> None:
    """The main process's random state on every process, for each of "torch" (the CPU), the device, "generator".

    Raises:
        ConfigurationError: an unknown kind, one that is not here, or "generator" without one.
    """
    for kind in rng_types:
        synchronize_rng_state(kind, generator)


def synchronize_rng_state(rng_type: str | RNGType | None = None, generator: torch.Generator | None = None) -> None:
    """The main process's random state on every process.

    Raises:
        ConfigurationError: an unknown kind, one that is not here, or "generator" without one.
    """
    state, put = state_of(rng_type, generator)
    collectives.broadcast_tensors(joined_world(), [state], 0, "synchronize_rng_states")
    put(state)


# on containers


def is_torch_tensor(tensor: Any) -> bool:
    """Whether this is a tensor."""
    return isinstance(tensor, Tensor)


def recursively_apply(
    func: Callable[..., Any],
    data: Any,
    *args: Any,
    test_type: Callable[[Any], bool] = is_torch_tensor,
    error_on_other_type: bool = False,
    **kwargs: Any,
) -> Any:
    """`data` with `func(leaf, *args, **kwargs)` in the place of every leaf that `test_type` accepts.

    Raises:
        TypeError: with `error_on_other_type`, where a leaf is something else.
    """

    def apply(leaf: Any) -> Any:
        if test_type(leaf):
            return func(leaf, *args, **kwargs)
        if error_on_other_type:
            names = [getattr(each, "__name__", repr(each)) for each in (func, test_type)]
            raise TypeError(f"{names[0]} takes containers of what {names[1]} accepts, got {type(leaf)}.")
        return leaf

    return map_leaves(apply, data)


def send_to_device(
    tensor: Any, device: Any, non_blocking: bool = False, skip_keys: str | Sequence[str] | None = None
) -> Any:
    """`tensor` with everything that has a method `to` on `device`; values under `skip_keys` stay where they are."""
    return moved(tensor, device, non_blocking, {skip_keys} if isinstance(skip_keys, str) else set(skip_keys or ()))


def slice_tensors(data: Any, tensor_slice: slice, process_index: Any = None, num_processes: Any = None) -> Any:
    """`data` with the slice of every tensor."""
    return recursively_apply(lambda tensor: tensor[tensor_slice], data)


def concatenate(data: Sequence[Any], dim: int = 0) -> Any:
    """Containers of one form, with their tensors joined along `dim`.

    Raises:
        TypeError: something else than tensors is in them, and there is more than one.
    """
    first = data[0]
    if isinstance(first, Tensor):
        return torch.cat(list(data), dim=dim)
    if isinstance(first, (list, tuple, Mapping)):
        parts = [concatenate([each[key] for each in data], dim) for key, _ in children(first) or ()]
        return rebuilt(first, parts)
    if len(data) == 1:
        return first
    raise TypeError(f"concatenate joins tensors, and got a {type(first).__name__}.")


def find_batch_size(data: Any) -> int:
    """The first dimension of the first tensor.

    Raises:
        ValueError: an empty container.
        TypeError: something else comes first.
    """
    if isinstance(data, Tensor):
        return data.shape[0]
    inside = children(data)
    if inside is None:
        raise TypeError(f"only tensors have a batch size, and this is a {type(data).__name__}.")
    if not inside:
        raise ValueError(f"an empty {type(data).__name__} has no batch size.")
    return find_batch_size(inside[0][1])


def listify(data: Any) -> Any:
    """`data` with lists of numbers in the place of tensors."""
    return recursively_apply(lambda tensor: tensor.detach().cpu().tolist(), data)


def convert_to_fp32(tensor: Any) -> Any:
    """`tensor` with its halves (float16, bfloat16) as float32."""
    return in_float32(tensor)


# models and files


def extract_model_from_parallel(
    model: Any, keep_fp32_wrapper: bool = True, keep_torch_compile: bool = True, recursive: bool = False
) -> Any:
    """The model that was given to `prepare`; see `Accelerator.unwrap_model`.

    Raises:
        ConfigurationError: `recursive=True`.
    """
    if recursive:
        raise ConfigurationError("recursive=True is not supported: unwrap the inner models, each by itself.")
    return plain_model(model, keep_fp32_wrapper, keep_torch_compile)


def is_compiled_module(module: Any) -> bool:
    """Whether this came out of `torch.compile`."""
    return hasattr(module, "_orig_mod")


def save(
    obj: Any, f: str | os.PathLike[str] | IO[bytes], save_on_each_node: bool = False, safe_serialization: bool = False
) -> None:
    """`torch.save` by the main process (or by one of each machine), into a file that is either whole or not there.

    Args:
        safe_serialization: write a dictionary of tensors as safetensors.

    Raises:
        SaveError: the folder is missing, or safetensors cannot hold the values.
    """
    here = Processes(joined_world())
    if here.is_local_main_process if save_on_each_node else here.is_main_process:
        write_file(obj, f, safe_serialization)


def load(f: str | os.PathLike[str] | IO[bytes], map_location: Any = None, **kwargs: Any) -> Any:
    """`torch.load` of tensors and containers; nothing in the file is run, unless `weights_only=False` says so."""
    return torch.load(f, map_location=map_location, **{"weights_only": True, **kwargs})
