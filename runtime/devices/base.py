"""What the runtime asks of a kind of device; the answers here are those of a plain one.

Nothing outside of this package asks which kind a device is: what differs is a question that every class answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import is_
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from runtime.config import DistributedType, MixedPrecision
from runtime.devices.streams import Streams
from runtime.kinds import Kind
from runtime.tree import children, rebuilt

HOST_BACKEND = "gloo"  # of a process group whose tensors lie in host memory


class Device:
    """One kind of device. Subclasses override the few answers that differ."""

    kind: ClassVar[Kind]
    backend: ClassVar[str | None] = None  # of the process group; None: more than one process is not possible
    backend_with_host: ClassVar[str | None] = None  # the same, where tensors in host memory are exchanged, too
    meets_on_host: ClassVar[bool] = False  # the runtime's own messages are exchanged in host memory, if the group can
    distributed_type: ClassVar[DistributedType] = DistributedType.NO  # of a run with several processes
    distributed_type_alone: ClassVar[DistributedType] = DistributedType.NO  # of a run with one
    needs_copies: ClassVar[bool] = True  # batches are made in host memory and must be copied
    scales: ClassVar[bool] = False  # has float16 with a gradient scaler; without, "fp16" computes in full precision
    pins: ClassVar[bool] = False  # reads page-locked host memory by itself
    joins_statistics: ClassVar[bool] = False  # PyTorch's SyncBatchNorm works on it
    moves_in_place: ClassVar[bool] = True  # `tensor.data =` takes one that lies there in the place of one on the host
    is_portable: ClassVar[bool] = True  # files with its tensors can be loaded where there is none
    compiler: ClassVar[str | None] = None  # the backend of torch.compile that there is in the place of "inductor"

    @classmethod
    def is_available(cls) -> bool:
        """Whether this machine has one."""
        return False

    @classmethod
    def count(cls) -> int:
        """How many processes of this machine can have one each; 0 where all share one, or there is none."""
        return 0

    @classmethod
    def names(cls) -> list[str]:
        """What those of this machine are called, for people."""
        return [cls.kind.name] if cls.is_available() else []

    @classmethod
    def is_in_use(cls) -> bool:
        """Whether this process has opened it, so that others would not have all of it, or none."""
        return False

    def own(self, local_rank: int, world_size: int) -> torch.device:
        """The device of this process, made current where the kind has a current device.

        Raises:
            WorldError: there is none for this process.
        """
        return torch.device(self.kind.name)

    def current(self) -> torch.device:
        """The device of this process, as it was made current before."""
        return torch.device(self.kind.name)

    def refusal(self, precision: MixedPrecision) -> str | None:
        """Why `precision` cannot be used here, with the way out; None if it can."""
        return None

    def place(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The model on its device. Parameters stay the objects that they are: optimizers hold and layers share them."""
        return model.to(device) if self.moves_in_place else _swapped_to(model, device)

    def put(self, tensors: Iterable[Tensor], device: torch.device) -> None:
        """Parameters and buffers, each by itself, on the device; they stay the objects that they are."""
        for tensor in tensors:
            here = tensor.data.to(device)
            if self.moves_in_place:
                tensor.data = here
            elif tensor.device != device:
                is_parameter = isinstance(tensor, nn.Parameter)
                other = nn.Parameter(here, tensor.requires_grad) if is_parameter else here
                torch.utils.swap_tensors(tensor, other)  # type: ignore[no-untyped-call]

    # processes

    def meeting_place(self, own: torch.device, backend: str) -> torch.device:
        """Where the messages of the runtime lie while they are exchanged in a process group of that backend."""
        goes_by_host = self.meets_on_host and HOST_BACKEND in backend
        return torch.device("cpu") if goes_by_host else self.reached(own, backend)

    def reached(self, own: torch.device, backend: str) -> torch.device:
        """Where large tensors may stay while they are exchanged: on the device, if the group reaches it."""
        return own if self.backend is not None and self.backend in backend else torch.device("cpu")

    def group_arguments(self, own: torch.device, backend: str) -> dict[str, Any]:
        """Arguments of `init_process_group` that depend on the device, for a group of that backend."""
        return {}

    def ddp_arguments(self, device: torch.device) -> dict[str, Any]:
        """Arguments of DistributedDataParallel that depend on the device."""
        return {}

    def launch_variables(self, machines: int, processes: int) -> Mapping[str, str]:
        """Variables that processes need before they start; `processes` is how many each of the machines runs.

        Raises:
            WorldError: the devices of a machine cannot be shared out to that many.
        """
        return {}

    # steps

    @property
    def end_step(self) -> Callable[[], None] | None:
        """What ends a step of the program, after an optimizer's step; None where computations start at once."""
        return None

    @property
    def spread(self) -> Callable[[Any], Any] | None:
        """What shares a batch out that has arrived, where one process has several chips; None where it has one."""
        return None

    def streams(self, device: torch.device) -> Streams | None:
        """What copies batches beside the computation; None where that cannot be."""
        return None

    def synchronize(self) -> None:
        """Wait until all that was asked of the device is done."""

    def empty_cache(self) -> None:
        """Give cached memory back."""

    # random numbers

    def seed(self, seed: int) -> None:
        """Seed generators that `torch.manual_seed` does not reach."""

    def random_states(self) -> dict[str, Any]:
        """The states of the random number generators that only this kind has, by the names of Accelerate."""
        return {}

    def set_random_states(self, states: dict[str, Any]) -> None:
        """Put these generators into such states; those of another kind are left out."""

    def random_state(self) -> torch.Tensor:
        """The state of the generator that this process draws from on its device, in host memory."""
        return torch.get_rng_state()

    def set_random_state(self, state: torch.Tensor) -> None:
        """Put that generator into this state."""
        torch.set_rng_state(state)


def _swapped_to(model: nn.Module, device: torch.device) -> nn.Module:
    """`model.to(device)` for kinds where PyTorch would make new parameters instead of changing those that are there.

    An optimizer made before would train what nobody uses, and layers that share a weight would each have their own.
    """
    future = torch.__future__
    before = future.get_swap_module_params_on_conversion()
    future.set_swap_module_params_on_conversion(True)
    try:
        return model.to(device)
    finally:
        future.set_swap_module_params_on_conversion(before)


def in_host_memory(device: torch.device) -> bool:
    """Whether tensors on it lie in the memory of the CPU."""
    return device.type == "cpu"


def on_a_device(tensor: Tensor) -> bool:
    """Whether its values lie in the memory of a device: neither in that of the CPU nor, as on `meta`, nowhere."""
    return not in_host_memory(tensor.device) and not tensor.is_meta


def moved(data: Any, device: Any, non_blocking: bool = False, skip_keys: Collection[str] = ()) -> Any:
    """`data` with its tensors on `device`: nested containers, dataclasses, and whatever has a method `to`.

    Leaves of other types come back as they are, and so does a container in which nothing had to move.

    Args:
        skip_keys: of mappings, at any depth; what they hold stays where it is.
    """
    if isinstance(data, torch.Tensor):
        return data.to(device, non_blocking=non_blocking)
    if type(data) in (list, tuple):  # a batch, mostly; the way of all containers would take longer than its copies
        moved_values = [moved(value, device, non_blocking, skip_keys) for value in data]
        return data if all(map(is_, moved_values, data)) else type(data)(moved_values)
    # PackedSequence, BatchEncoding, graph batches
    if callable(getattr(data, "to", None)) and not isinstance(data, type):
        try:
            return data.to(device, non_blocking=non_blocking)
        except TypeError:  # a `to` without that argument
            return data.to(device)
    inside = children(data)
    if not inside:
        return data
    skipped = skip_keys if isinstance(data, Mapping) else ()
    values = [value if key in skipped else moved(value, device, non_blocking, skip_keys) for key, value in inside]
    if all(new is old for new, (_, old) in zip(values, inside, strict=True)):
        return data
    return rebuilt(data, values)
