"""Gradient accumulation: which micro-steps end with an optimizer step, and what a loss is divided by.

Every set of models has a counter of its own, so two models trained in turn (a generator and a discriminator) do not
count each other's micro-steps. The last batch of a pass over a prepared loader always synchronises, unless
`sync_with_dataloader` is False.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING

from torch import nn
from torch.optim import Optimizer

from runtime.data.passes import Pass, Passes
from runtime.telling import tell
from runtime.unheld import Unheld

if TYPE_CHECKING:
    from runtime.plugins import GradientAccumulationPlugin


class Accumulation:
    """The counters of one accelerator, and whether gradients are synchronised now."""

    def __init__(self, steps: int, passes: Passes, windows: GradientAccumulationPlugin | None = None) -> None:
        self.steps = steps
        self.is_due = True  # the optimizer may step; True outside of any `accumulate`
        self._ends_with_pass = windows is None or windows.sync_with_dataloader
        self._exchanges_always = windows is not None and windows.sync_each_batch
        self._is_exact = windows is not None and windows.exact_last_window
        self._passes = passes
        self._counts: dict[frozenset[int], int] = {}
        self._lengths: dict[frozenset[int], int] = {}  # of windows that the end of a pass cuts short
        self._length: int | None = None  # of the window that goes on, if it is such a one
        self._nothing = nullcontext()
        self._unheld = Unheld(passes.rank)
        self._within: Pass | None = None  # that the last micro-step was in
        self._is_told_of_clipping = self._is_told_of_steps = False
        self.is_divided = False  # whether `backward` has divided a loss

    def hold(self, optimizer: Optimizer) -> Callable[[], None]:
        """This optimizer steps when a window ends, and not before; gives what ends that."""
        return self._unheld.hold(optimizer)

    @property
    def divisor(self) -> int:
        """What `backward` divides a loss by: the micro-steps of a window."""
        return self._length or self.steps

    @property
    def asks_for_the_last(self) -> bool:
        """Whether it makes a difference that a batch is the last of a pass."""
        return self.steps > 1 and self._ends_with_pass

    def say_undivided(self) -> None:
        """Told once at an optimizer step: no loss has come to `backward` of the accelerator by then."""
        if self.divisor == 1:
            return
        self.is_divided = True
        if self._passes.rank == 0:
            tell(
                "an optimizer steps with gradients that accelerator.backward() has not computed: nothing divides "
                f"their losses by the {self.divisor} micro-steps of a window. Write accelerator.backward(loss) for "
                "loss.backward(), and do not divide by hand."
            )

    def say_clipped(self) -> None:
        """Told once: gradients are clipped that are not complete."""
        if not self._is_told_of_clipping and self._passes.rank == 0:
            tell(
                "gradients are clipped while they are still being accumulated: what a window adds up to is another "
                "gradient than that of the whole batch, clipped once. Clip under `if accelerator.sync_gradients:`."
            )
        self._is_told_of_clipping = True

    def say_left_out(self) -> None:
        """Told once: a step is left out in a loop that has no micro-steps, for a window that another one has begun."""
        is_another = self._within is not None and self._within.is_over and self._passes.current is not None
        if is_another and not self._is_told_of_steps and self._passes.rank == 0:
            tell(
                "optimizer.step() is left out: a window of accumulate() is not complete, the loop that began it was "
                "left, and this one runs none. Write `with accelerator.accumulate(model):` in it, or set "
                "accelerator.sync_gradients = True before."
            )
        self._is_told_of_steps = self._is_told_of_steps or is_another

    def say_outside(self, name: str, times: int) -> None:
        """Told at the first step of a scheduler that counts samples, if no loop over a prepared loader goes on."""
        if self._passes.current is None and self._passes.rank == 0:
            tell(
                f"a prepared {name} steps {times} times for each step() of the script, once for every process, as "
                "schedules do that count batches; this step() is in no loop over a prepared loader. Where it counts "
                "epochs, or is stepped as often as on one process, leave the scheduler out of prepare()."
            )

    def window(self, models: tuple[nn.Module, ...], no_sync: NoSync) -> AbstractContextManager[None]:
        """A context for one micro-step of these models."""
        if self.steps == 1:
            self.is_due = True
            return self._nothing
        return _MicroStep(self, models, no_sync)

    def advance(self, models: tuple[nn.Module, ...]) -> bool:
        """Count a micro-step; True if gradients are exchanged in it."""
        key = frozenset(map(id, models))
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = 0
            self._unheld.begin(key)
        if self._unheld.sets:
            self._unheld.look(key, models, is_inside=count % self.steps != 0)
        if self._is_exact:
            self._measure(key, count)
        current = self._within = self._passes.current
        if self._ends_with_pass and current is not None and current.is_last:
            self._counts[key] = 0
            self.is_due = True
        else:
            self._counts[key] = count + 1
            self.is_due = (count + 1) % self.steps == 0
        return self.is_due or self._exchanges_always

    def _measure(self, key: frozenset[int], count: int) -> None:
        """At the start of a window: how many micro-steps the pass has left for it, one for each of its batches."""
        current = self._passes.current
        if count % self.steps == 0:
            self._lengths.pop(key, None)
            if self._ends_with_pass and current is not None and current.steps is not None:
                self._lengths[key] = max(1, min(self.steps, current.steps - current.step + 1))
        self._length = self._lengths.get(key)

    def forget(self) -> None:
        """Start counting anew."""
        self._counts.clear()
        self._lengths.clear()
        self._length = None
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
