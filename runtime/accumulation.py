"""Gradient accumulation: which micro-steps end with an optimizer step.

Every set of models has a counter of its own, so two models trained in turn (a generator and a discriminator) do not
count each other's micro-steps. The last batch of a pass over a prepared loader always synchronises.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext

from torch import nn

from runtime.data.passes import Passes


class Accumulation:
    """The counters of one accelerator, and whether gradients are synchronised now."""

    def __init__(self, steps: int, passes: Passes) -> None:
        self.steps = steps
        self.is_due = True  # the optimizer may step; True outside of any `accumulate`
        self._passes = passes
        self._counts: dict[frozenset[int], int] = {}
        self._nothing = nullcontext()

    def window(self, models: tuple[nn.Module, ...], no_sync: NoSync) -> AbstractContextManager[None]:
        """A context for one micro-step of these models."""
        if self.steps == 1:
            self.is_due = True
            return self._nothing
        return _MicroStep(self, models, no_sync)

    def advance(self, models: tuple[nn.Module, ...]) -> bool:
        """Count a micro-step; True if it is the last of its window."""
        key = frozenset(map(id, models))
        current = self._passes.current
        if current is not None and current.is_last:
            self._counts[key] = 0
            self.is_due = True
        else:
            self._counts[key] = self._counts.get(key, 0) + 1
            self.is_due = self._counts[key] % self.steps == 0
        return self.is_due

    def forget(self) -> None:
        """Start counting anew."""
        self._counts.clear()
        self.is_due = True


NoSync = Callable[[nn.Module], AbstractContextManager[None]]


class _MicroStep(AbstractContextManager[None]):
    """Counts on entry, and keeps the models from exchanging gradients until the window ends."""

    __slots__ = ("_accumulation", "_models", "_no_sync", "_stack")

    def __init__(self, accumulation: Accumulation, models: tuple[nn.Module, ...], no_sync: NoSync) -> None:
        self._accumulation = accumulation
        self._models = models
        self._no_sync = no_sync
        self._stack = ExitStack()

    def __enter__(self) -> None:
        if self._accumulation.advance(self._models):
            return
        for model in self._models:
            self._stack.enter_context(self._no_sync(model))

    def __exit__(self, *exception: object) -> None:
        self._stack.close()
