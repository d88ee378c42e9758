"""How a model lives on several processes; the base is one process."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from runtime.config import DistributedType
from runtime.devices import Device
from runtime.handlers import DistributedDataParallelKwargs
from runtime.world import World

if TYPE_CHECKING:
    from runtime.sharding import Sharding


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a strategy stands on: the processes, their devices, and what the script has asked for.

    `dtype` is the number format of a mixed precision; None for full precision.
    """

    world: World
    device: Device
    own: torch.device
    dtype: torch.dtype | None = None
    replicas: DistributedDataParallelKwargs = field(default_factory=DistributedDataParallelKwargs)
    sharding: Sharding | None = None


class Strategy:
    """One process: models are used as they are."""

    places_models: ClassVar[bool] = False  # `wrap` brings the model to the device

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._world = ground.world

    @property
    def distributed_type(self) -> DistributedType:
        """What the processes of this run are."""
        device = self._ground.device
        return device.distributed_type if self._world.size > 1 else device.distributed_type_alone

    @property
    def writes_shards(self) -> bool:
        """Whether every process writes its own part of a sharded model into a checkpoint."""
        return self._ground.sharding is not None and self._ground.sharding.writes_shards

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model as the training loop should call it."""
        return model

    def rebind(self, optimizer: Optimizer) -> None:
        """Let an optimizer that was made for a model's parameters have those that `wrap` has put in their place."""

    def average(self, models: Iterable[nn.Module]) -> None:
        """Average gradients over the processes after a backward, where that was not done while it ran."""

    def catch_up(self, models: Iterable[nn.Module]) -> None:
        """Make equal, before an evaluation, what training has changed on each process without an exchange."""

    def no_sync(self, model: nn.Module) -> AbstractContextManager[Any]:
        """A context in which backward does not exchange gradients."""
        return nullcontext()

    def way_out(self, error: RuntimeError) -> str | None:
        """What a script can do about an error of PyTorch in a forward or backward; None where that is not known."""
        return None

    def sync_in_backward(self, model: nn.Module) -> AbstractContextManager[None]:
        """A context in which backward exchanges gradients, whatever was said when the forward ran.

        Nothing to do where that is looked at in backward itself.
        """
        return nullcontext()

    def clip_grad_norm_(self, parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float) -> Tensor:
        """Clip gradients by their total norm over all processes, and give it back as it was before."""
        return nn.utils.clip_grad_norm_(parameters, max_norm, norm_type=norm_type)

    # What files hold. Where a model is sharded, all processes must call these; where not, any may.

    def is_sharded(self, model: nn.Module) -> bool:
        """Whether this process holds only a part of the model, so that its `state_dict()` has distributed tensors."""
        return has_distributed_tensors(model)

    def state_dict(self, model: nn.Module) -> dict[str, Any]:
        """The whole state of the model with the keys it had before `wrap`.

        Of a sharded model it is gathered on the main process, on its CPU; the others get an empty dictionary.
        """
        state: dict[str, Any] = unwrapped(model, keep_torch_compile=False).state_dict()
        return state

    def load_state_dict(self, model: nn.Module, state: dict[str, Any], **options: Any) -> None:
        """Load what `state_dict` gave; a sharded model takes what the main process has, and only that.

        Args:
            options: of `Module.load_state_dict`.
        """
        unwrapped(model, keep_torch_compile=False).load_state_dict(state, **options)

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """The whole state of the optimizer in the form of `Optimizer.state_dict()`, with plain tensors.

        Of sharded parameters it is gathered on the main process, on its CPU; the others get an empty dictionary.
        """
        return optimizer.state_dict()

    def load_optimizer_state(self, optimizer: Optimizer, state: dict[str, Any]) -> None:
        """Load what `optimizer_state` gave; for sharded parameters what the main process has, and only that."""
        optimizer.load_state_dict(state)


def unwrapped(model: Any, keep_torch_compile: bool = True) -> Any:
    """The model that was wrapped for several devices.

    With `keep_torch_compile=False` also without the wrapper of `torch.compile`; else one that was put around the
    wrapped model is around the model inside, so that its keys are those of one process.
    """
    while isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        model = model.module
    if not hasattr(model, "_orig_mod"):
        return model
    inside = model._orig_mod  # noqa: SLF001  torch.compile has no public name for it
    plain = unwrapped(inside, keep_torch_compile)
    if not keep_torch_compile:
        return plain
    return model if plain is inside else type(model)(plain, model.dynamo_ctx)


def is_distributed_tensor(value: object) -> bool:
    """Whether `value` is a DTensor; the module that has the class takes more than half a second to import."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def has_distributed_tensors(model: nn.Module) -> bool:
    """Whether parameters of the model are divided over processes."""
    return any(is_distributed_tensor(parameter) for parameter in model.parameters())
