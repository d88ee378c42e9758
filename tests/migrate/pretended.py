"""Runs a script as on a machine with two GPUs that are only pretended: `PRETENDED=1 python pretended.py script.py`.

Everything is computed on the CPU. Each tensor remembers where it would be: what makes tensors puts them on the device
that is asked for, `to` and `cuda` take them to another one, and every other function of PyTorch ends as it would where
its tensors are on two devices. So a conversion can be seen to put things where they belong, on the second GPU as well,
where no GPU is at hand. What a GPU computes is not known of it: streams, half precision and NCCL are left to tests/gpu.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader

HOST = "cpu"
#: What takes tensors from several devices: it copies, asks, writes, or is the optimizer's own for lists of tensors.
ACROSS = frozenset(
    """copy_ __get__ __set__ __repr__ __format__ __setitem__ __getitem__ index_put_ index_select load_state_dict type_as
    backward register_hook __reduce_ex__ __deepcopy__""".split()
)
LISTS = ("_foreach", "_fused")
#: What takes the lengths of a packed sequence, which are whole numbers on the CPU.
RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})


class Gpu:
    """The current GPU of the process."""

    number = int(os.environ.get("PRETENDED", "0"))

    @classmethod
    def name(cls, device: Any) -> str:
        """How a device is called with its number: "cuda:1" for "cuda" where that is the current one."""
        device = torch.device("cuda", device) if type(device) is int else torch.device(device)
        if device.type != "cuda":
            return str(device.type)
        return f"cuda:{cls.number if device.index is None else device.index}"

    @classmethod
    def choose(cls, device: Any) -> None:
        cls.number = int(cls.name(device)[len("cuda:") :])

    @classmethod
    @contextlib.contextmanager
    def chosen(cls, device: Any):
        before = cls.number
        cls.choose(device)
        yield
        cls.number = before


def place(tensor: Tensor) -> str | None:
    """Where a tensor would be; None: nobody has said it."""
    return vars(tensor).get("_place")


def put(tensor: Tensor, where: str | None) -> Tensor:
    if where is not None:
        vars(tensor)["_place"] = where
    return tensor


def taken(tensor: Tensor, where: str | None) -> Tensor:
    """A tensor on another device, a copy as it would be; itself where it is there."""
    if where is None or (place(tensor) or HOST) == where:
        return put(tensor, where)
    return put(tensor.clone(), where)


class Places(TorchFunctionMode):
    """Follows the tensors."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in PROPERTIES:
            return PROPERTIES[function](place(args[0]) or HOST)
        name = getattr(function, "__name__", "")
        special = SPECIAL.get(function) or SPECIAL.get(name)
        if special is not None and args and isinstance(args[0], Tensor):
            return special(function, *args, **kwargs)
        if name == "_parse_to":  # what `Module.to` is told
            return function(*args, **kwargs)
        asked = kwargs.pop("device", None)
        kwargs.pop("pin_memory", None)
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        asked_of = [leaf for leaf in given if name not in RECURRENT or leaf.is_floating_point()]
        places = {where for leaf in asked_of if (where := place(leaf)) and (leaf.dim() or where != HOST)}
        if len(places) > 1 and name not in ACROSS and not name.startswith(LISTS):
            where = ", ".join(sorted(places))
            raise RuntimeError(f"{name}: expected all tensors to be on the same device, found {where}")
        made = function(*args, **kwargs)
        unsaid = None if given else HOST  # of tensors that were made by no function of PyTorch's, nothing is known
        where = Gpu.name(asked) if asked is not None else _of_first(args, name) or next(iter(places), unsaid)
        for leaf in tree_leaves(made):
            if isinstance(leaf, Tensor) and not any(leaf is each for each in given):
                put(leaf, where)
        return made


def _of_first(args: Any, name: str) -> str | None:
    return place(args[0]) if name in ACROSS and args and isinstance(args[0], Tensor) else None


def _to(function, tensor, *args, **kwargs):
    """`x.to(device, dtype)`, `x.to(dtype)`, `x.to(other)`."""
    others = [each for each in args if isinstance(each, Tensor)]
    devices = [each for each in (*args, kwargs.get("device")) if isinstance(each, (str, torch.device))]
    devices += [each for each in args[:1] if type(each) is int]
    kinds = [each for each in (*args, kwargs.get("dtype")) if isinstance(each, torch.dtype)]
    kinds += [other.dtype for other in others]
    where = Gpu.name(devices[0]) if devices else place(others[0]) or HOST if others else place(tensor)
    cast = function(tensor, kinds[0]) if kinds else tensor
    return taken(put(cast, place(tensor) or HOST), where)


def _packed(function, tensor, *args, **kwargs):
    """The lengths of a packed sequence are on the CPU, whatever holds its steps."""
    data, lengths = function(tensor, *args, **kwargs)
    return put(data, place(tensor)), put(lengths, HOST)


def _set_data(function, tensor, data):
    function(tensor, data)
    put(tensor, place(data))


def _gradient(function, tensor):
    found = function(tensor)
    return found if found is None or place(found) else put(found, place(tensor))


def _numpy(function, tensor, *args, **kwargs):
    if (where := place(tensor) or HOST) != HOST:
        raise TypeError(f"can't convert {where} device type tensor to numpy. Use Tensor.cpu() to copy it first.")
    return function(tensor, *args, **kwargs)


PROPERTIES = {
    Tensor.device.__get__: torch.device,
    Tensor.is_cuda.__get__: lambda where: where != HOST,
    Tensor.is_cpu.__get__: lambda where: where == HOST,
    Tensor.get_device: lambda where: -1 if where == HOST else int(where.rpartition(":")[2]),
}
SPECIAL = {
    "to": _to,
    "cuda": lambda _, tensor, device=None, **__: taken(tensor, Gpu.name("cuda" if device is None else device)),
    "cpu": lambda _, tensor, **__: taken(tensor, HOST),
    "numpy": _numpy,
    "__array__": _numpy,
    "pin_memory": lambda _, tensor, *__: tensor,
    "is_pinned": lambda *_: False,
    "_pack_padded_sequence": _packed,
    "record_stream": lambda *_: None,
    Tensor.data.__set__: _set_data,
    Tensor.grad.__get__: _gradient,
}


def _moved(module, change, recurse=True):
    """`Module._apply`: parameters stay the same objects, as they do when they are moved to a GPU."""
    for child in module.children():
        child._apply(change)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            parameter.data = change(parameter.data)
            module._parameters[name] = parameter
    for name, buffer in module._buffers.items():
        module._buffers[name] = None if buffer is None else change(buffer)
    return module


def _copied(copy):
    """`Parameter.__deepcopy__`, which makes a tensor by no function of PyTorch's."""

    def pretended(parameter, memo):
        return put(copy(parameter, memo), place(parameter))

    return pretended


def _loaded(load):
    def pretended(*args, map_location=None, **kwargs):
        found = load(*args, map_location=HOST, **kwargs)
        where = HOST if callable(map_location) or isinstance(map_location, dict) else map_location or "cuda"
        for leaf in tree_leaves(found):
            if isinstance(leaf, Tensor):
                put(leaf, Gpu.name(where))
        return found

    return pretended


def _made_here(make):
    def pretended(loader, *args, **kwargs):
        for option in ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers"):
            kwargs.pop(option, None)
        make(loader, *args, **kwargs)

    return pretended


class _Stream:
    """Streams and events: all is in order anyway."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return lambda *_, **__: None


def pretend() -> None:
    """Let PyTorch say that there are two GPUs."""
    known = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 2,
        "current_device": lambda: Gpu.number,
        "set_device": Gpu.choose,
        "device": Gpu.chosen,
        "get_device_name": lambda *_: "pretended",
        "get_device_capability": lambda *_: (8, 0),
        "get_device_properties": lambda *_: SimpleNamespace(name="pretended", total_memory=1 << 34, major=8, minor=0),
        "Stream": _Stream,
        "Event": _Stream,
        "current_stream": _Stream,
        "stream": lambda *_: contextlib.nullcontext(),
        "get_rng_state": lambda *_: torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": list,
        "memory_allocated": lambda *_: 0,
        "max_memory_allocated": lambda *_: 0,
    }
    silent = "synchronize empty_cache manual_seed manual_seed_all init set_rng_state set_rng_state_all"
    known |= {name: lambda *_, _name=name: None for name in silent.split()}  # PyTorch lists functions: each its own
    for name, pretended in known.items():
        setattr(torch.cuda, name, pretended)
    torch.nn.Module._apply = _moved
    torch.nn.Parameter.__deepcopy__ = _copied(torch.nn.Parameter.__deepcopy__)
    torch.load = _loaded(torch.load)
    DataLoader.__init__ = _made_here(DataLoader.__init__)


if __name__ == "__main__":
    pretend()
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    with Places():
        runpy.run_path(sys.argv[0], run_name="__main__")
