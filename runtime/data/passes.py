"""Which passes over prepared loaders are going on, and where they stand.

A pass begins with its first batch and ends when its loop does: exhausted, left with `break`, or by an exception. During
the body of the last step it is still there. Passes nest (a validation in the middle of an epoch); the innermost counts.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from runtime.data.plan import Share


class Purpose(Enum):
    """What a pass is for, and so how its batches are divided."""

    TRAINING = "training"
    EVALUATION = "evaluation"


class Pass:
    """One pass over a prepared loader: the step it is in."""

    __slots__ = ("share", "step", "steps", "weight")

    def __init__(self, steps: int | None) -> None:
        self.steps = steps  # planned; None if nobody can know
        self.step = 0
        self.share: Share | None = None  # None: what the other ranks hold is not known
        self.weight = 1.0

    @property
    def is_last(self) -> bool:
        """Whether the current step is the last; False if the number of steps is not known."""
        return self.step == self.steps


class Passes:
    """The passes of one accelerator, outermost first, and the models that tell training from evaluation."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._going_on: list[Pass] = []
        self.models: list[nn.Module] = []  # prepared models without wrappers, whose mode may be another
        self.weight = 1.0  # of the innermost pass, see Share.weight

    @property
    def current(self) -> Pass | None:
        """The innermost pass; None outside of any."""
        return self._going_on[-1] if self._going_on else None

    def purpose(self) -> Purpose:
        """What a pass that starts now is for.

        Evaluation if gradients are disabled, or if there are prepared models and all of them are in eval mode.
        """
        if not torch.is_grad_enabled() or (self.models and not any(model.training for model in self.models)):
            return Purpose.EVALUATION
        return Purpose.TRAINING

    def begin(self, started: Pass) -> None:
        """A new innermost pass."""
        self._going_on.append(started)
        self.weight = 1.0

    def advance(self, of: Pass, share: Share | None) -> None:
        """The next step of a pass has this share."""
        of.step += 1
        if share is of.share:
            return
        of.share = share
        of.weight = 1.0 if share is None else share.weight(self._rank)
        self._set_weight()

    def end(self, ended: Pass) -> None:
        """The loop over this pass is over. Others may go on, in any order."""
        self._going_on.remove(ended)
        self._set_weight()

    def _set_weight(self) -> None:
        self.weight = self._going_on[-1].weight if self._going_on else 1.0
