"""Optimizers that nobody holds back, which step after every micro-step: found in the first window of a set of models.

What is at hand tells them: parameters that change between two micro-steps of one window, and that are of no optimizer
which steps when the window ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import WeakSet

from torch import nn
from torch.optim import Optimizer

from runtime.telling import tell

Set = frozenset[int]  # of models, by identity


class Unheld:
    """The sets of models whose first window goes on, and the optimizers that are held back."""

    def __init__(self, rank: int) -> None:
        self.sets: dict[Set, int | None] = {}  # how often their parameters had changed when the micro-step began
        self._rank = rank
        self._held: WeakSet[Optimizer] = WeakSet()

    def hold(self, optimizer: Optimizer) -> Callable[[], None]:
        """This one is held back; gives what ends that."""
        self._held.add(optimizer)
        return partial(self._held.discard, optimizer)

    def begin(self, key: Set) -> None:
        """The first window of a set of models begins."""
        self.sets[key] = None

    def look(self, key: Set, models: tuple[nn.Module, ...], *, is_inside: bool) -> None:
        """At the beginning of a micro-step; `is_inside`: others of its window came before it."""
        if key not in self.sets:
            return
        before = self.sets[key]
        if before is not None and not is_inside:  # the window is over
            del self.sets[key]
            return
        held = {id(p) for optimizer in self._held for group in optimizer.param_groups for p in group["params"]}
        free = [p for model in models for p in model.parameters() if p.requires_grad and id(p) not in held]
        changes = sum(p._version for p in free)  # noqa: SLF001  there is no public name
        if before is not None and changes > before:
            del self.sets[key]
            if self._rank == 0:
                self._tell(models)
        else:
            self.sets[key] = changes

    def _tell(self, models: tuple[nn.Module, ...]) -> None:
        names = ", ".join(type(getattr(model, "module", model)).__name__ for model in models)
        tell(
            f"parameters of {names} change between the micro-steps of one window of accumulate(): their optimizer "
            "steps after each, instead of once a window, since this accelerator has not prepared it. Pass it to "
            "prepare() of the accelerator whose accumulate() this is."
        )
