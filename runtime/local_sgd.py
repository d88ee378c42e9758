"""Local SGD: processes train by themselves for some steps, then take the mean of their parameters."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from runtime.errors import ConfigurationError, PrepareError

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

    from runtime.accelerator import Accelerator


class LocalSGD:
    """A context around training: no gradients are exchanged inside; call `step()` after each optimizer step.

    After every `local_sgd_steps` steps, and at the end, parameters and floating-point buffers become their mean over
    the processes. Not at the end of a body that raises: the others may not come there. Optimizer states stay local.

    Args:
        local_sgd_steps: optimizer steps between two means.
        enabled: False exchanges gradients in every step, as without the context.

    Raises:
        ConfigurationError: `local_sgd_steps` is no whole number, or less than 1.
        PrepareError: the model is sharded, so no process can train it alone.
    """

    def __init__(self, accelerator: Accelerator, model: nn.Module, local_sgd_steps: int, enabled: bool = True) -> None:
        given: object = local_sgd_steps
        if not isinstance(given, int) or given < 1:
            raise ConfigurationError(f"local_sgd_steps={local_sgd_steps!r} is not a whole number of at least 1.")
        self.enabled = enabled and accelerator.num_processes > 1
        self.num_steps = 0
        self._accelerator, self._model, self._every = accelerator, model, local_sgd_steps
        self._alone: AbstractContextManager[Any] = nullcontext()
        if self.enabled and accelerator.is_sharded(model):
            raise PrepareError("LocalSGD: the model is sharded over the processes. Train it without fsdp_plugin.")

    def __enter__(self) -> Self:
        if self.enabled:
            self._alone = self._accelerator.no_sync(self._model)
            self._alone.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:  # noqa: PYI036  handed on as it comes
        self._alone.__exit__(*exception)
        self._alone = nullcontext()
        if self.enabled and exception[0] is None:
            self._average()

    def step(self) -> None:
        """Count an optimizer step, and take the mean when it is due."""
        self.num_steps += 1
        if self.enabled and self.num_steps % self._every == 0:
            self._average()

    def _average(self) -> None:
        own = [t.detach() for t in (*self._model.parameters(), *self._model.buffers()) if t.is_floating_point()]
        with torch.no_grad():
            for tensor, mean in zip(own, self._accelerator.reduce(own, "mean"), strict=True):
                tensor.copy_(mean)
