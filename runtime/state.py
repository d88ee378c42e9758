"""`PartialState`, `AcceleratorState` and `GradientState`: views of what an accelerator, or the process group, knows.

They hold nothing that anybody else changes: each is made anew from the accelerator that was made last (or from the
environment where there is none yet), so there is no state to reset. `_reset_state`, which tests written against
Accelerate call, forgets which accelerator was last; that one can prepare nothing more, as there.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

import torch
from torch import nn

from runtime.accumulation import Accumulation
from runtime.config import DistributedType, flag, flag_or_none, precision_of
from runtime.data.passes import Passes
from runtime.devices import Device, pick
from runtime.errors import ConfigurationError, WorldError
from runtime.handlers import InitProcessGroupKwargs
from runtime.processes import Processes
from runtime.world import World, leave

_last: list[weakref.ref[Owner]] = []  # the accelerator that was made last


class Owner(Processes):
    """What the views need of an accelerator: it is one of these."""

    device: torch.device
    distributed_type: DistributedType
    mixed_precision: str
    _device: Device
    _accumulation: Accumulation
    _passes: Passes
    _models: list[nn.Module]
    _is_retired = False

    def _become_current(self) -> None:
        _last[:] = [weakref.ref(self)]

    @property
    def state(self) -> AcceleratorState:
        """Processes, device and precision in one object."""
        return AcceleratorState(_owner=self)

    @property
    def gradient_state(self) -> GradientState:
        """Where accumulation and the pass over a loader stand."""
        return GradientState(_owner=self)

    def _refuse_retired(self) -> None:
        if self._is_retired:
            raise AttributeError(
                "`AcceleratorState` object has no attribute `distributed_type`. This happens if "
                "`AcceleratorState._reset_state()` was called and an `Accelerator` or `PartialState` was not made anew."
            )


def current() -> Owner | None:
    """The accelerator that was made last, if it is still there."""
    return _last[0]() if _last else None


def joined_world() -> World:
    """The world of the accelerator or of the process group; the one that the environment describes, joined, else."""
    return PartialState()._world  # noqa: SLF001  a view of it


class PartialState(Processes):
    """The processes and the device, with or without an `Accelerator`.

    Args:
        cpu: use the CPU even if there is a GPU, where there is no accelerator yet.
        options: arguments of `InitProcessGroupKwargs`, where the processes have not been joined yet.
    """

    def __init__(self, cpu: bool = False, *, _owner: Owner | None = None, **options: Any) -> None:
        owner = _owner or current()
        if owner is None:
            world, kind, self.device = _joined(cpu, options)
            distributed_type = kind.distributed_type if world.size > 1 else kind.distributed_type_alone
        else:
            world, self.device, distributed_type = owner._world, owner.device, owner.distributed_type  # noqa: SLF001
        super().__init__(world)
        self.distributed_type = distributed_type
        self.backend = world.backend
        self.fork_launched = False

    @property
    def initialized(self) -> bool:
        """True: there is nothing that has to come first."""
        return True

    @property
    def debug(self) -> bool:
        """Whether processes that wait in vain are found; can be set."""
        from runtime import watch

        return watch.is_on()

    @debug.setter
    def debug(self, value: bool) -> None:
        from runtime import watch

        if value:
            watch.begin(self._world, True)
        else:
            watch.end()

    def destroy_process_group(self, group: Any = None) -> None:
        """Leave the process group, or destroy `group`."""
        if group is None:
            leave()
        else:
            torch.distributed.destroy_process_group(group)

    def __repr__(self) -> str:
        """For logs."""
        backend = f"  Backend: {self.backend}" if self.backend else ""
        return (
            f"Distributed environment: {self.distributed_type.value}{backend}\n"
            f"Num processes: {self.num_processes}\n"
            f"Process index: {self.process_index}\n"
            f"Local process index: {self.local_process_index}\n"
            f"Device: {self.device}\n"
        )

    @staticmethod
    def _reset_state() -> None:
        """Forget the accelerator that was made last."""
        _retire()


def _joined(cpu: bool, options: dict[str, Any]) -> tuple[World, Device, torch.device]:
    environ = os.environ
    alone = World.from_environment(environ)
    kind = pick(cpu or flag(environ.get("ACCELERATE_USE_CPU", False), "ACCELERATE_USE_CPU"), alone.size)
    device = kind.own(alone.local_rank, alone.size)
    world = alone.join(kind, device, InitProcessGroupKwargs(**options))
    from runtime import watch

    watch.begin(world, flag_or_none(environ.get("ACCELERATE_DEBUG_MODE"), "ACCELERATE_DEBUG_MODE"))
    return world, kind, device


def _retire() -> None:
    owner = current()
    if owner is not None:
        owner._is_retired = True  # noqa: SLF001  a part of the same
    _last.clear()


class AcceleratorState(PartialState):
    """`PartialState` and the precision.

    Args:
        mixed_precision: "no", "bf16" or "fp16"; None: that of the accelerator, else ACCELERATE_MIXED_PRECISION.

    Raises:
        ConfigurationError: it is not known, or another one than the accelerator's.
    """

    def __init__(self, mixed_precision: str | None = None, cpu: bool = False, **options: Any) -> None:
        super().__init__(cpu, **options)
        owner = options.get("_owner") or current()
        known = owner.mixed_precision if owner else os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
        chosen = precision_of(mixed_precision or known).value
        if owner is not None and chosen != known:
            raise ConfigurationError(
                f"AcceleratorState(mixed_precision={mixed_precision!r}) contradicts the accelerator's {known!r}. "
                "Leave it out."
            )
        self.mixed_precision = chosen
        self.deepspeed_plugin = None  # scripts ask whether there is one

    def __repr__(self) -> str:
        """For logs."""
        return f"{super().__repr__()}Mixed precision type: {self.mixed_precision}\n"

    @staticmethod
    def _reset_state(reset_partial_state: bool = False) -> None:  # noqa: ARG004  the signature in Accelerate
        """Forget the accelerator that was made last."""
        _retire()


class GradientState:
    """Where accumulation and the pass over a prepared loader stand.

    Raises:
        WorldError: there is no accelerator.
    """

    def __init__(self, *, _owner: Owner | None = None) -> None:
        owner = _owner or current()
        if owner is None:
            raise WorldError(
                "GradientState() is a view of an accelerator, and there is none. Make the Accelerator first."
            )
        self._accumulation, self._passes = owner._accumulation, owner._passes  # noqa: SLF001  a view of it

    @property
    def sync_gradients(self) -> bool:
        """Whether this micro-step ends with an optimizer step."""
        return self._accumulation.is_due

    @property
    def num_steps(self) -> int:
        """Micro-steps per optimizer step."""
        return self._accumulation.steps

    @property
    def in_dataloader(self) -> bool:
        """Whether a pass over a prepared loader is going on."""
        return self._passes.position is not None

    @property
    def end_of_dataloader(self) -> bool:
        """Whether the innermost pass is in its last step."""
        step, steps = self._passes.position or (None, -1)
        return step == steps

    @property
    def remainder(self) -> int:
        """How many samples of this step count over all processes; -1 where all do, or where it is not known."""
        current_pass = self._passes.current
        share = None if current_pass is None else current_pass.share
        return -1 if share is None or share.valid == share.rows else sum(share.valid)

    @staticmethod
    def _reset_state() -> None:
        """There is nothing to reset."""
