"""Gradients that an optimizer uses and nobody averages: looked for in the first backwards, from what is at hand."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from weakref import WeakSet

from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from runtime.strategies.base import is_distributed_tensor
from runtime.telling import tell
from runtime.world import World

BACKWARDS = 16  # that are looked at for an optimizer: several take turns


class Unaveraged:
    """The optimizers whose gradients nobody has looked at yet; each is looked at once, when it has some."""

    def __init__(self, world: World) -> None:
        self.backwards = 0  # that are still looked at
        self._world = world
        self._known: WeakSet[Optimizer] = WeakSet()
        self._unseen: WeakSet[Optimizer] = WeakSet()

    def add(self, optimizer: Optimizer) -> None:
        """Look at this one, too."""
        if optimizer not in self._known:
            self._known.add(optimizer)
            self._unseen.add(optimizer)
            self.backwards = BACKWARDS

    def look(self, averaged: Iterable[nn.Parameter]) -> None:
        """After a backward in which the gradients of `averaged` became those of all processes."""
        known = set(map(id, averaged))
        for optimizer in list(self._unseen):
            trained = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            if trained:
                self._unseen.discard(optimizer)
                self._tell([p for p in trained if id(p) not in known and not is_distributed_tensor(p)], optimizer)
        self.backwards = self.backwards - 1 if self._unseen else 0

    def _tell(self, outside: list[nn.Parameter], optimizer: Optimizer) -> None:
        if outside:  # a program may have wrapped a model by itself: asked for only now, since it takes a while
            by_hand = {id(p) for model in _wrapped_by_hand() for p in model.parameters()}
            outside = [p for p in outside if id(p) not in by_hand]
        if outside and self._world.rank == 0:
            tell(
                f"{type(optimizer).__name__} trains parameters ({len(outside)}, the first of shape "
                f"{tuple(outside[0].shape)}) whose gradients are not averaged: the processes will hold different "
                "values. They are of no model that prepare() was given to train, or were made after it. Pass the model "
                "that holds them to prepare(), and run what that gives back."
            )


def _wrapped_by_hand() -> list[DistributedDataParallel]:
    """Models in PyTorch's own wrapper: one of ours says by itself what it averages."""
    found = (item for item in gc.get_objects() if issubclass(type(item), DistributedDataParallel))
    return [item for item in found if not hasattr(type(item), "averaged")]
