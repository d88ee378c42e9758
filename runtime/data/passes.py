"""Which passes over prepared loaders are going on, and where they stand.

A pass begins with its first batch and ends when its loop does: exhausted, left with `break`, or by an exception. During
the body of the last step it is still there. Passes nest (a validation in the middle of an epoch), or take turns
(iterators that a script goes on with by hand); as the innermost counts the one that went on last. Loops are the
program's, not an accelerator's: one that is made somewhere else in the program knows of them, too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from runtime.data.plan import Share


class Purpose(Enum):
    """What a pass is for, and so how its batches are divided."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    WHOLE = "evaluation of whole batches"  # every process has all of each batch


class Pass:
    """One pass over a prepared loader: the step it is in."""

    __slots__ = ("_since", "added", "beside", "is_over", "rows", "share", "step", "steps", "weight")

    def __init__(self, steps: int | None) -> None:
        self.rows = 0  # of this process in the steps before those of `share`, where batches are shared out by rows
        self.added = 0  # of all processes in them, only so that every process has some
        self._since = 0
        self.steps = steps  # planned; None if nobody can know
        self.step = 0
        self.is_over = False
        self.beside: Pass | None = None  # that went on just before this step: they take turns, as in a `zip`
        self.share: Share | None = None  # None: what the other ranks hold is not known
        self.weight = 1.0

    @property
    def is_last(self) -> bool:
        """Whether the current step is the last; False if the number of steps is not known."""
        return self.step == self.steps

    @property
    def is_ambiguous(self) -> bool:
        """Whether rows of this step may be those of another pass, of which others count."""
        other = self.beside
        if other is None or other.is_over or self.share == other.share:
            return False
        return any(share is not None and share.valid != share.rows for share in (self.share, other.share))

    def count(self, rank: int) -> None:
        """Count the rows of the steps that had this share; once for all of them, since most steps of a pass do."""
        if self.share is not None and self.share.is_one_batch:
            steps = self.step - self._since
            self.rows += steps * self.share.rows[rank]
            self.added += steps * (sum(self.share.rows) - sum(self.share.valid))
        self._since = self.step


_going_on: list[Pass] = []  # in this process, the one that went on last at the end; one that is over takes itself out
_Direct = tuple[weakref.ref[Any], Callable[[], int | None]]  # an iterator of PyTorch's own, and how many steps it has


class Passes:
    """The passes that are going on, as an accelerator sees them; its models, which tell training from evaluation."""

    def __init__(self, rank: int, before_evaluation: Callable[[], None] = lambda: None) -> None:
        self.rank = rank
        self.before_evaluation = before_evaluation  # called by all processes where a pass that evaluates begins
        self.last: Pass | None = None  # that has ended
        self.models: list[nn.Module] = []  # prepared models without wrappers, whose mode may be another
        self._direct: list[_Direct] = []

    @property
    def current(self) -> Pass | None:
        """The innermost pass; None outside of any."""
        return _going_on[-1] if _going_on else None

    @property
    def weight(self) -> float:
        """That of the innermost pass, see `Share.weight`."""
        return _going_on[-1].weight if _going_on else 1.0

    def purpose(self) -> Purpose:
        """What a pass that starts now is for.

        Evaluation if gradients are disabled, or if there are prepared models and all of them are in eval mode.
        """
        if not torch.is_grad_enabled() or (self.models and not any(model.training for model in self.models)):
            return Purpose.EVALUATION
        return Purpose.TRAINING

    @property
    def position(self) -> tuple[int, int | None] | None:
        """The step and the steps of the innermost pass, also of one that nobody counts; None outside of any."""
        if (current := self.current) is not None:
            return current.step, current.steps
        going_on = ((batches(), steps) for batches, steps in reversed(self._direct))
        return next(((b._num_yielded, steps()) for b, steps in going_on if b is not None), None)  # noqa: SLF001

    def begin_direct(self, batches: Any, steps: Callable[[], int | None]) -> None:
        """A pass that is PyTorch's own iterator: it goes on as long as that is there."""
        self._direct = [known for known in self._direct if known[0]() is not None]
        self._direct.append((weakref.ref(batches), steps))

    def begin(self, started: Pass) -> None:
        """A new innermost pass."""
        _going_on.append(started)

    def advance(self, of: Pass, share: Share | None) -> None:
        """The next step of a pass has this share."""
        of.beside = None
        if _going_on[-1] is not of:
            of.beside = _going_on[-1]
            _going_on.remove(of)
            _going_on.append(of)
        if share is not of.share:
            of.count(self.rank)
            of.share = share
            of.weight = 1.0 if share is None else share.weight(self.rank)
        of.step += 1

    def end(self, ended: Pass) -> None:
        """The loop over this pass is over. Others may go on, in any order."""
        _going_on.remove(ended)
        ended.is_over = True
        ended.count(self.rank)
        self.last = ended
