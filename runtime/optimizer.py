"""Optimizers that step when gradients are complete and finite, and schedulers that follow them.

An optimizer is never replaced by another object: where steps have to be held back (gradient accumulation, a gradient
scaler) its `step` and `zero_grad` are covered on the object itself, the way PyTorch's schedulers cover `step`. So its
class, its hooks, its own methods and whatever else holds it stay as they are, and schedulers made before or after
`prepare` work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any, cast

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from runtime.accumulation import Accumulation
from runtime.precision import Precision


def hold_back(optimizer: Optimizer, precision: Precision, accumulation: Accumulation) -> Callable[[], None]:
    """Let the optimizer step only when the micro-step is due, through the precision.

    Its attribute `step_was_skipped` says whether the last step was left out for gradients that were not finite.

    Returns:
        A function that takes the cover off again.
    """
    run, clear, let_go = optimizer.step, optimizer.zero_grad, accumulation.hold(optimizer)
    covered = {name: optimizer.__dict__.get(name) for name in ("step", "zero_grad")}

    def step(self: Optimizer, *arguments: Any, **options: Any) -> Any:
        if not accumulation.is_due:
            accumulation.say_left_out()
            return None
        call = partial(run, *arguments, **options)
        has_closure = any(value is not None for value in (*arguments, *options.values()))
        if not (accumulation.is_divided or has_closure):
            accumulation.say_undivided()
        result, was_skipped = precision.step(self, call, has_closure=has_closure)
        self.__dict__["step_was_skipped"] = was_skipped
        return result

    def zero_grad(self: Optimizer, *arguments: Any, **options: Any) -> None:
        if accumulation.is_due:
            clear(*arguments, **options)

    if hasattr(run, "_wrapped_by_lr_sched"):  # a scheduler made earlier looks for its mark
        step.__dict__["_wrapped_by_lr_sched"] = True
    optimizer.__dict__["step"] = MethodType(step, optimizer)
    optimizer.__dict__["zero_grad"] = MethodType(zero_grad, optimizer)

    def uncover() -> None:
        let_go()
        for name, before in covered.items():
            if before is None:
                optimizer.__dict__.pop(name, None)
            else:
                optimizer.__dict__[name] = before

    return uncover


class Following:
    """What a prepared scheduler does differently from the class it is mixed into: when it steps, and how often."""

    __slots__ = ()
    _optimizers: list[Optimizer]
    _accumulation: Accumulation
    _times: int
    _is_begun: bool  # whether it has been stepped
    scheduler: LRScheduler

    def step(self, *arguments: Any, **options: Any) -> None:
        """Step as often as the data of all processes ask for; not between optimizer steps, nor after a skipped one."""
        if not self._accumulation.is_due:
            return
        for optimizer in self._optimizers:
            if getattr(optimizer, "step_was_skipped", False):
                return
        if not self._is_begun:
            type(self)._is_begun = True  # noqa: SLF001  one class for each scheduler, see `following`
            if self._times > 1 and not (arguments or options):  # told a place, it is there however often it steps
                self._accumulation.say_outside(type(self).__name__, self._times)
        scheduler: Any = self.scheduler
        for _ in range(self._times):
            total = getattr(scheduler, "total_steps", None)  # OneCycleLR raises when it is stepped further
            if total is None or scheduler._step_count <= total:  # noqa: SLF001  there is no public name
                scheduler.step(*arguments, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or what was pickled, is the scheduler itself, with a state of its own and nothing to follow."""
        return _itself, (self.scheduler,)


def _itself(scheduler: LRScheduler) -> LRScheduler:
    return scheduler


def following(
    scheduler: LRScheduler, optimizers: list[Optimizer], accumulation: Accumulation, times: int
) -> LRScheduler:
    """`scheduler` prepared: an instance of its class that shares its state.

    Args:
        times: steps per call, the number of processes where each process takes batches of the original size: a
            schedule is counted in samples, and N processes go through them N times as fast.
    """
    rest = {
        "__doc__": type(scheduler).__doc__,
        "_optimizers": optimizers,
        "_accumulation": accumulation,
        "_times": times,
        "_is_begun": False,
        "scheduler": scheduler,
    }  # on the class, because state_dict returns all that is on the object
    kind: type[Any] = type(type(scheduler).__name__, (Following, type(scheduler)), rest)
    result = object.__new__(kind)
    object.__setattr__(result, "__dict__", scheduler.__dict__)
    return cast("LRScheduler", result)
