"""The number formats of the forward pass: what surrounds a model's forward, a backward and an optimizer step.

The base computes as PyTorch does by itself. `PRECISIONS` names the class for each setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import MethodType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import OptState
from torch.optim import Optimizer

from runtime.config import MixedPrecision
from runtime.errors import PrecisionError
from runtime.handlers import AutocastKwargs, GradScalerKwargs
from runtime.tree import map_leaves

_PATCHED = "_forward_in_low_precision"  # marks the forward that a precision has put on a model
_BEFORE = "_forward_of_the_script"  # keeps the one that a script has put on it before


class Precision:
    """Full precision: everything as it is."""

    dtype: torch.dtype | None = None
    scaler: torch.amp.GradScaler | None = None

    def __init__(self, device: torch.device, autocast: AutocastKwargs, scaling: GradScalerKwargs) -> None:
        self._device = device
        self._autocast = autocast

    def autocast(self, options: AutocastKwargs | None = None) -> AbstractContextManager[Any]:
        """The context for computations in this precision."""
        return nullcontext()

    def apply(self, model: nn.Module) -> None:
        """Make `model.forward` compute in this precision, in place."""

    def backward(self, loss: Tensor, **arguments: Any) -> None:
        """Gradients of `loss`, scaled if the precision scales."""
        loss.backward(**arguments)  # type: ignore[no-untyped-call]

    def unscale(self, optimizers: Iterable[Optimizer]) -> None:
        """Take the scale off the gradients, so that they can be looked at or clipped."""

    def step(self, optimizer: Optimizer, run: Callable[[], Any], *, has_closure: bool) -> tuple[Any, bool]:
        """Let `run` update the parameters: what it returned, and whether the update was skipped."""
        return run(), False


class Bf16(Precision):
    """bfloat16 where PyTorch's autocast allows it; outputs come back in float32."""

    dtype = torch.bfloat16

    def autocast(self, options: AutocastKwargs | None = None) -> AbstractContextManager[Any]:
        chosen = options or self._autocast
        return torch.autocast(self._device.type, self.dtype, chosen.enabled, chosen.cache_enabled)

    def apply(self, model: nn.Module) -> None:
        if is_patched(model):
            return
        inner, device, dtype, options = model.forward, self._device.type, self.dtype, self._autocast
        function = inner.__func__ if isinstance(inner, MethodType) and inner.__self__ is model else None
        if "forward" in model.__dict__:
            model.__dict__[_BEFORE] = inner

        def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            with torch.autocast(device, dtype, options.enabled, options.cache_enabled):
                output = function(self, *args, **kwargs) if function is not None else inner(*args, **kwargs)
            return in_float32(output)

        setattr(forward, _PATCHED, True)
        # A bound method, no closure over the model: a deep copy (an average of the weights) then runs its own weights.
        model.forward = MethodType(forward, model)


class Fp16(Bf16):
    """float16 with a gradient scaler.

    The scale is adjusted once per iteration, however many optimizers step: it happens before the next backward.
    """

    dtype = torch.float16

    def __init__(self, device: torch.device, autocast: AutocastKwargs, scaling: GradScalerKwargs) -> None:
        super().__init__(device, autocast, scaling)
        self.scaler: Scaler = Scaler(device.type, **scaling.arguments())
        self._running = False
        self._ran = False

    def backward(self, loss: Tensor, **arguments: Any) -> None:
        self.scaler.settle()
        self.scaler.rescale()
        self.scaler.scale(loss).backward(**arguments)  # type: ignore[no-untyped-call]

    def unscale(self, optimizers: Iterable[Optimizer]) -> None:
        for optimizer in optimizers:
            self.scaler.unscale_once(optimizer)

    def step(self, optimizer: Optimizer, run: Callable[[], Any], *, has_closure: bool) -> tuple[Any, bool]:
        if self._running:  # the scaler found finite gradients and calls the optimizer back
            self._ran = True
            return run(), False
        if has_closure:
            raise PrecisionError(
                "optimizer.step(closure) cannot be combined with mixed_precision='fp16': the gradients of a closure "
                "are not scaled. Use mixed_precision='bf16', or step without a closure."
            )
        self._running, self._ran = True, False
        try:
            result = self.scaler.step(optimizer)
        finally:
            self._running = False
        self.scaler.is_update_due = True
        was_skipped = not self._ran or self.scaler.found_overflow(optimizer)
        return result, was_skipped


class Unscaled(Precision):
    """float16 where there is none: full precision, and a scaler that is turned off, as torch.cuda.amp has it there."""

    def __init__(self, device: torch.device, autocast: AutocastKwargs, scaling: GradScalerKwargs) -> None:
        super().__init__(device, autocast, scaling)
        self.scaler = torch.amp.GradScaler(device.type, enabled=False)


class Scaler(torch.amp.GradScaler):
    """PyTorch's gradient scaler, whose update can wait until somebody asks for the scale."""

    def __init__(self, device: str, **arguments: Any) -> None:
        super().__init__(device, **arguments)
        self.is_update_due = False
        self._unscaled: dict[int, Optimizer] = {}  # since the last update, by identity

    def settle(self) -> None:
        """Do the update if it is due."""
        if self.is_update_due:
            self.update()

    def update(self, new_scale: float | Tensor | None = None) -> None:
        self.is_update_due = False
        self._unscaled.clear()
        super().update(new_scale)

    def rescale(self) -> None:
        """Scale gradients again that were unscaled, to be clipped, before more is added to them.

        The scale is a power of two, so nothing is rounded; what was not finite stays so, and is found at the step.
        """
        scale = super().get_scale() if self._unscaled else 1.0
        for optimizer in self._unscaled.values():
            state = self._per_optimizer_states[id(optimizer)]
            if state["stage"] is OptState.UNSCALED:
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        if parameter.grad is not None:
                            parameter.grad.mul_(scale)
                state["stage"] = OptState.READY
        self._unscaled.clear()

    def unscale_once(self, optimizer: Optimizer) -> None:
        """Unscale the gradients unless that has been done since the last update."""
        if id(optimizer) not in self._unscaled:
            self._unscaled[id(optimizer)] = optimizer
            self.unscale_(optimizer)

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[torch.device, Tensor]:
        """As PyTorch's, for each kind of gradients apart.

        PyTorch's takes no list of sharded ones and whole ones, and does not wait for the scale to arrive in host
        memory, where those of an offloaded model are.
        """
        kinds: dict[tuple[type, torch.device], list[Tensor]] = {}
        for parameter in (parameter for group in optimizer.param_groups for parameter in group["params"]):
            if parameter.grad is not None:
                kinds.setdefault((type(parameter.grad), parameter.grad.device), []).append(parameter)
        found: dict[torch.device, Tensor] = {}
        for (_, device), alike in kinds.items():
            part: Any = SimpleNamespace(param_groups=[{"params": alike}])
            here = super()._unscale_grads_(part, inv_scale.to(device), found_inf.to(device), allow_fp16)
            for place, one in here.items():
                found[place] = torch.maximum(found[place], one) if place in found else one
        return found

    def get_scale(self) -> float:
        self.settle()
        return super().get_scale()

    def state_dict(self) -> dict[str, Any]:
        self.settle()
        return super().state_dict()

    def found_overflow(self, optimizer: Optimizer) -> bool:
        """Whether the gradients were not finite; for fused optimizers, which are called either way."""
        found = self._found_inf_per_device(optimizer) if self.is_enabled() else {}
        return bool(sum(value.item() for value in found.values()))


PRECISIONS: dict[MixedPrecision, type[Precision]] = {
    MixedPrecision.NO: Precision,
    MixedPrecision.BF16: Bf16,
    MixedPrecision.FP16: Fp16,
}


def in_float32(output: Any) -> Any:
    """`output` with its float16 and bfloat16 tensors in float32; nested containers and dataclasses too."""
    return _widened(output) if isinstance(output, Tensor) else map_leaves(_widened, output)


def _widened(leaf: Any) -> Any:
    if isinstance(leaf, Tensor) and leaf.dtype in (torch.float16, torch.bfloat16):
        return leaf.float()
    return leaf


def is_patched(model: nn.Module) -> bool:
    """Whether a precision has replaced the model's forward."""
    return hasattr(model.__dict__.get("forward"), _PATCHED)


def restore(model: nn.Module) -> None:
    """Give the model the forward back that it had before: its class's, or what a script has put in its place."""
    if is_patched(model):
        del model.__dict__["forward"]
        if _BEFORE in model.__dict__:
            model.__dict__["forward"] = model.__dict__.pop(_BEFORE)
