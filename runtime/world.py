"""The processes of a run: how many there are, which one this is, and the group that joins them."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.distributed as dist

from runtime.devices import HOST_BACKEND, Device, reached_by
from runtime.errors import WorldError
from runtime.handlers import InitProcessGroupKwargs
from runtime.open_files import end_process


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """This process among all: `rank` of `size`, `local_rank` of `local_size` on its machine.

    `device` is where messages of the runtime are exchanged: the process's own device with NCCL, the CPU with gloo.
    `reached` is where large tensors are: the process's own device if the process group reaches that, else the CPU.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    reached: torch.device = field(default_factory=lambda: torch.device("cpu"))
    backend: str | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> World:
        """What torchrun's variables say (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE); nothing is joined.

        A process group that the script has already made decides over the variables.

        Raises:
            WorldError: WORLD_SIZE says several, but RANK is missing or none of theirs, or a variable is not a number.
        """
        if is_joined():
            rank, size = dist.get_rank(), dist.get_world_size()
        else:
            size = _number(environ, "WORLD_SIZE", 1)
            rank = _number(environ, "RANK", None if size > 1 else 0)
        if size == 1:
            return cls()
        if not 0 <= rank < size:  # PyTorch would wait for processes that there are not
            raise WorldError(
                f"RANK={rank} and WORLD_SIZE={size}: ranks are counted from 0, to one less than the number of "
                "processes. Start with `runtime launch` or torchrun."
            )
        return cls(
            rank=rank,
            size=size,
            local_rank=_number(environ, "LOCAL_RANK", rank),
            local_size=_number(environ, "LOCAL_WORLD_SIZE", size),
        )

    def join(
        self, device: Device, own: torch.device, options: InitProcessGroupKwargs, *, offloads: bool = False
    ) -> World:
        """This world with its process group; a group that exists already is used as it is.

        Args:
            offloads: what is exchanged may lie in host memory, too.
        """
        if self.size == 1:
            return self
        if not dist.is_initialized():
            by_host = offloads or device.meets_on_host
            own_backend = device.backend_with_host if by_host else device.backend
            backend = options.backend or own_backend or HOST_BACKEND
            _start_group(self, backend, options, device.group_arguments(own, backend))
        backend = dist.get_backend()
        return self.in_group(device, own, backend)

    def in_group(self, device: Device, own: torch.device, backend: str) -> World:
        """This world with the places where a process group of that backend exchanges what its processes say."""
        place, reached = device.meeting_place(own, backend), device.reached(own, backend)
        return replace(self, device=place, reached=reached, backend=backend)

    def place_of(self, tensors: Iterable[torch.Tensor]) -> torch.device:
        """Where tensors can be exchanged: where they are, if the group reaches all of them there."""
        is_reached = all(tensor.device == self.reached for tensor in tensors)
        return self.reached if is_reached else self.device


def is_joined() -> bool:
    """Whether there is a process group; also where PyTorch was built without them."""
    return dist.is_available() and dist.is_initialized()


def current_world() -> World:
    """The world of the process group that is there, for functions called without an `Accelerator`."""
    if not is_joined():
        return World()
    backend = dist.get_backend()
    return World.from_environment(os.environ).in_group(*reached_by(backend), backend)


_at_leaving: list[Callable[[], None]] = []
#: The groups that were left. A wrapped model may hold one, too, and would end it while it holds Python's lock, which a
#: thread of gloo may be waiting for (torch 2.13: the process hangs). Let go of in here, it ends without that lock.
_left: list[Any] = []
#: The store of that group and what the variables said of its place. Who joins again goes on with it: at that place the
#: others may still find what is about to be closed, with what the group that was left has said there.
_met: list[tuple[tuple[str | None, ...], Any]] = []
#: Older versions (2.6 was seen to) hold the lock there all the same, and hang if that thread still wants it, to let go
#: of the last collective: it gets this long for it, in seconds.
_SETTLING = 0.0 if torch.__version__ >= "2.13" else 0.1
_unfinished: list[str] = []  # what this process no longer waits for, though PyTorch does


def at_leaving(function: Callable[[], None]) -> None:
    """Call `function` once, before the process group is left."""
    _at_leaving.append(function)


def give_up(call: str) -> None:
    """This process waits no longer for a collective that has begun; PyTorch would, when its group ends.

    So the group is kept, and the process ends before Python takes down what it keeps.
    """
    if not is_joined():
        return
    _left.append(_group())
    if not _unfinished:
        atexit.register(_end_given_up, os.getpid())  # the last that is registered is the first that runs
    _unfinished.append(call)


def end_at_once() -> None:
    """End the process, with its exit handlers, where it would otherwise wait for a collective that it has given up."""
    if _unfinished:
        atexit.unregister(_end_given_up)
        end_process(1)


def leave() -> None:
    """Destroy the process group, if there is one."""
    while _at_leaving:
        _at_leaving.pop()()
    if is_joined():
        from torch.distributed import distributed_c10d

        _left.append(_group())
        _met[:] = [(_place(), distributed_c10d._get_default_store())]  # noqa: SLF001  as above
        dist.destroy_process_group()


def _group() -> Any:
    from torch.distributed import distributed_c10d

    return distributed_c10d._get_default_group()  # noqa: SLF001  there is no public name


def _let_go() -> None:
    """End the group that was left, unless that would wait for what was given up."""
    if _left and not _unfinished:
        time.sleep(_SETTLING)
        _left.clear()


def _place() -> tuple[str | None, ...]:
    return tuple(os.environ.get(name) for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"))


def _number(environ: Mapping[str, str], name: str, default: int | None) -> int:
    text = environ.get(name)
    if text is None:
        if default is None:
            raise WorldError(f"WORLD_SIZE is set, but {name} is not. Start with `runtime launch` or torchrun.")
        return default
    try:
        return int(text)
    except ValueError:
        raise WorldError(f"{name}={text!r} is not a number. Start with `runtime launch` or torchrun.") from None


def _start_group(world: World, backend: str, options: InitProcessGroupKwargs, of_device: Mapping[str, Any]) -> None:
    from torch.distributed.distributed_c10d import PrefixStore

    arguments: dict[str, Any] = {"backend": backend, **of_device}
    if options.timeout is not None:
        arguments["timeout"] = options.timeout
    if options.init_method is not None:
        arguments["init_method"] = options.init_method
    elif _met and _met[0][0] == _place():
        arguments["store"] = PrefixStore("again", _met[0][1])
    _met.clear()
    _let_go()  # with its store, which may have the port that this one needs
    try:
        dist.init_process_group(rank=world.rank, world_size=world.size, **arguments)
    except RuntimeError as error:  # of torch 2.6; newer ones make it a DistNetworkError
        if "EADDRINUSE" not in str(error):
            raise
        port = os.environ.get("MASTER_PORT")
        raise WorldError(
            f"port {port}, where the main process of this run listens, is in use: another run, or one that has not "
            "ended yet. Start with `runtime launch`, which finds a free port, or set MASTER_PORT to another one on all "
            "machines."
        ) from error
    except ValueError as error:
        raise WorldError(
            f"rank {world.rank} of {world.size} cannot join the others: {error} "
            "Start with `runtime launch` or torchrun."
        ) from error
    atexit.register(_at_exit, os.getpid())


def _at_exit(owner: int) -> None:
    if os.getpid() == owner:
        leave()
        if not _unfinished:
            _met.clear()
            _let_go()


def _end_given_up(owner: int) -> None:
    if os.getpid() == owner:
        end_at_once()
