"""The training as PyTorch sees it: every backward, every optimizer step, the learning rates. Public hooks only."""

from __future__ import annotations

import sys
import time
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from migrate.verify.order import Order
from migrate.verify.recorder.chance import standing
from migrate.verify.recorder.journal import Journal
from migrate.verify.recorder.sums import checksum, finite, norm, parameters, projection


class Training:
    """The observer of backward calls and steps; it also ends the run, and undoes steps where that is asked for."""

    def __init__(self, journal: Journal, order: Order) -> None:
        self._journal = journal
        self._order = order
        self._optimizers: dict[int, tuple[int, Optimizer]] = {}  # the object itself, so that its id is not used again
        self._taken: list[int] = []
        self._kept: dict[int, list[torch.Tensor]] = {}
        self._gradients: dict[int, tuple[float, float] | None] = {}
        self._is_inside = False
        self._drawn = b""
        self._draws = False
        self._begun = time.monotonic()
        self._types: set[str] = set()  # that autocast computes in

    def watch(self) -> None:
        """From now on."""
        self._cover(torch.Tensor, "backward")
        self._cover(torch.autograd, "backward")
        self._cover_autocast(torch.autocast)
        self._cover_group()
        self._cover_plateau(torch.optim.lr_scheduler.ReduceLROnPlateau)
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)

    def batch_came(self) -> None:
        """What is drawn from here to the backward is drawn by the step itself."""
        self._drawn = standing()

    def _cover(self, owner: Any, name: str) -> None:
        run = getattr(owner, name)

        def backward(tensors: Any, *arguments: Any, **options: Any) -> Any:
            if self._is_inside:
                return run(tensors, *arguments, **options)
            self._note(tensors, self._journal.place(sys._getframe(1)))  # noqa: SLF001
            self._is_inside = True
            try:
                return run(tensors, *arguments, **options)
            finally:
                self._is_inside = False

        setattr(owner, name, backward)

    def _cover_autocast(self, kind: Any) -> None:
        run = kind.__enter__

        def __enter__(context: Any) -> Any:  # noqa: N807
            if context._enabled:  # noqa: SLF001 - there is no public name
                self._types.add(_name(context.fast_dtype))
            return run(context)

        kind.__enter__ = __enter__

    def _cover_group(self) -> None:
        """Whether a program joins others by itself."""
        if not torch.distributed.is_available():
            return
        run = torch.distributed.init_process_group

        def join(*arguments: Any, **options: Any) -> None:
            run(*arguments, **options)
            self._journal.write("joined", size=torch.distributed.get_world_size())

        torch.distributed.init_process_group = join

    def _cover_plateau(self, kind: Any) -> None:
        run = kind.step

        def step(scheduler: Any, *arguments: Any, **options: Any) -> Any:
            self._journal.write("plateau")
            return run(scheduler, *arguments, **options)

        kind.step = step

    def _note(self, tensors: Any, place: str) -> None:
        some = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        value = float(sum(float(tensor.detach().double().sum()) for tensor in some))
        self._draws = self._draws or self._drawn not in {b"", standing()}
        self._journal.write("loss", step=self._journal.steps, value=finite(value), place=place, exact=value.hex())

    def _before(self, optimizer: Optimizer, *_arguments: Any) -> None:
        now = time.monotonic()
        number, _ = self._optimizers.setdefault(id(optimizer), (len(self._optimizers), optimizer))
        if number == len(self._taken):
            self._taken.append(0)
        if self._taken[number] >= self._order.steps:
            self._journal.leave("steps")
        self._gradients[number] = self._gradient(optimizer)
        self._journal.write("rate", optimizer=number, seconds=now - self._begun, rates=_rates(optimizer))
        if self._order.is_frozen:
            self._kept[number] = [parameter.detach().clone() for parameter in parameters(optimizer)]

    def _gradient(self, optimizer: Optimizer) -> tuple[float, float] | None:
        gradients = [p.grad for p in parameters(optimizer) if p.grad is not None]
        return (norm(gradients), projection(gradients)) if gradients else None

    def _after(self, optimizer: Optimizer, *_arguments: Any) -> None:
        number, _ = self._optimizers[id(optimizer)]
        some = parameters(optimizer)
        gradient = self._gradients.pop(number, None) or self._gradient(optimizer)  # of closures: afterwards
        if number in self._kept:
            with torch.no_grad():
                for parameter, value in zip(some, self._kept.pop(number), strict=True):
                    parameter.copy_(value)
        self._taken[number] += 1
        self._journal.steps = max(self._taken)
        self._journal.write(
            "step",
            optimizer=number,
            kind=type(optimizer).__name__,
            number=self._taken[number],
            gradient=None if gradient is None else [finite(each) for each in gradient],
            parameters=checksum(some),
            size=finite(norm(some)),
            devices=sorted({parameter.device.type for parameter in some}),
            types=sorted({*self._types, *(_name(parameter.dtype) for parameter in some)}),
            draws=self._draws,
        )
        self._draws = False
        self._drawn = standing()
        self._begun = time.monotonic()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _rates(optimizer: Optimizer) -> list[float | str]:
    return [finite(float(group["lr"])) for group in optimizer.param_groups if "lr" in group]
