"""What a training step calls: backward, accumulation, precision and clipping."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from runtime.accumulation import Accumulation
from runtime.config import Config, accumulation_steps
from runtime.data.passes import Passes
from runtime.errors import BackwardError, PrecisionError, PrepareError
from runtime.handlers import AutocastKwargs
from runtime.precision import Fp16, Precision
from runtime.processes import Processes
from runtime.strategies import Strategy


class Training(Processes):
    """The part of `Accelerator` that a training step goes through. What it needs is made once, by the accelerator."""

    config: Config
    _accumulation: Accumulation
    _passes: Passes
    _precision: Precision
    _strategy: Strategy
    _models: list[nn.Module]
    _optimizers: list[Optimizer]

    def backward(self, loss: Tensor, **kwargs: Any) -> None:
        """Gradients of `loss`, (), averaged over the processes; `kwargs` go to `Tensor.backward`.

        The loss is divided by `gradient_accumulation_steps`. Where the processes hold parts of one batch that differ in
        size (`split_batches`), it is weighted so that the average is the gradient of the mean over the batch.

        Raises:
            BackwardError: DistributedDataParallel cannot average these gradients; the message has the way out.
        """
        if (divisor := self._accumulation.divisor) > 1:
            loss = loss / divisor
            self._accumulation.is_divided = True
        if self._passes.weight != 1.0:
            loss = loss * self._passes.weight
        try:
            self._precision.backward(loss, **kwargs)
        except RuntimeError as error:
            if (way_out := self._strategy.way_out(error)) is None:
                raise
            raise BackwardError(f"{error}\n{way_out}") from error
        self._strategy.average(self._models)

    @property
    def mixed_precision(self) -> str:
        """What models compute in: "no" (as they are), "bf16" or "fp16"."""
        return self.config.mixed_precision.value

    @mixed_precision.setter
    def mixed_precision(self, value: str) -> None:
        raise AttributeError(
            f"mixed_precision={value!r} cannot be set any more: what is prepared, and what scales, was chosen by it. "
            f"Pass it to Accelerator(mixed_precision={value!r})."
        )

    def accumulate(self, *models: nn.Module) -> AbstractContextManager[None]:
        """A context for one micro-step; sets `sync_gradients`, which is True in the last one of a window.

        The last batch of the innermost pass over a prepared loader always ends a window. Every set of models counts for
        itself.
        """
        return self._accumulation.window(models, self._strategy.no_sync)

    def no_sync(self, model: nn.Module) -> AbstractContextManager[Any]:
        """A context in which `backward` does not average the model's gradients."""
        return self._strategy.no_sync(model)

    def trigger_sync_in_backward(self, model: nn.Module) -> AbstractContextManager[None]:
        """A context in which `backward` averages gradients, also through forwards that ran under `no_sync`.

        Gradients that were accumulated under `no_sync` before take part: all of `parameter.grad` is averaged.
        """
        return self._strategy.sync_in_backward(model)

    def is_sharded(self, model: nn.Module) -> bool:
        """Whether this process holds only a part of the model."""
        return self._strategy.is_sharded(model)

    def autocast(self, autocast_handler: AutocastKwargs | None = None) -> AbstractContextManager[Any]:
        """The context for computations outside of a prepared model's forward in the precision in use."""
        return self._precision.autocast(autocast_handler)

    def clip_grad_norm_(self, parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2) -> Tensor:
        """`torch.nn.utils.clip_grad_norm_` on unscaled gradients.

        Returns:
            The total norm over all processes before clipping: (), a plain tensor also of sharded models.

        Raises:
            PrecisionError: with mixed_precision="fp16", where gradients are still being accumulated.
        """
        return self._strategy.clip_grad_norm_(self._unscaled(parameters), max_norm, norm_type)

    def clip_grad_value_(self, parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
        """`torch.nn.utils.clip_grad_value_` on unscaled gradients.

        Raises:
            PrecisionError: with mixed_precision="fp16", where gradients are still being accumulated.
        """
        nn.utils.clip_grad_value_(self._unscaled(parameters), clip_value)

    def unscale_gradients(self, optimizer: Optimizer | Iterable[Optimizer] | None = None) -> None:
        """Take the scale of mixed_precision="fp16" off the gradients of optimizers (None: all) before they are read."""
        chosen = self._optimizers if optimizer is None else optimizer
        self._precision.unscale([chosen] if isinstance(chosen, Optimizer) else chosen)

    def _unscaled(self, parameters: Tensor | Iterable[Tensor]) -> Tensor | Iterable[Tensor]:
        if not isinstance(self._precision, Fp16):
            if not self._accumulation.is_due:
                self._accumulation.say_clipped()
            return parameters
        if not self.sync_gradients:
            raise PrecisionError(
                "gradients that are still being accumulated cannot be unscaled with mixed_precision='fp16'. "
                "Clip under `if accelerator.sync_gradients:`."
            )
        parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        scaled = set(map(id, parameters))
        for optimizer in reversed(self._optimizers):  # of several for one parameter, the last made is the one in use
            mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
            if mine & scaled:
                self._precision.unscale([optimizer])
                scaled -= mine
        return parameters

    @property
    def sync_gradients(self) -> bool:
        """Whether this micro-step ends with an optimizer step; True outside of `accumulate`."""
        return self._accumulation.is_due

    @sync_gradients.setter
    def sync_gradients(self, value: bool) -> None:
        self._accumulation.is_due = value

    @property
    def gradient_accumulation_steps(self) -> int:
        """Micro-steps per optimizer step."""
        return self._accumulation.steps

    @gradient_accumulation_steps.setter
    def gradient_accumulation_steps(self, value: int) -> None:
        value = accumulation_steps(value)
        if value > 1 and self._accumulation.steps == 1 and self._optimizers:
            raise PrepareError(
                f"gradient_accumulation_steps={value} is set after an optimizer was prepared to step every time. "
                "Set it before prepare, or pass it to Accelerator()."
            )
        self._accumulation.steps = value

    @property
    def optimizer_step_was_skipped(self) -> bool:
        """Whether a prepared optimizer left its last step out because gradients were not finite."""
        return any(getattr(optimizer, "step_was_skipped", False) for optimizer in self._optimizers)
