"""What the processes that save or load together tell each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from runtime.devices import HOST_BACKEND
from runtime.world import World, is_joined


@dataclass(frozen=True, slots=True)
class Told:
    """Something that one process told: a value, or why it has none."""

    leader: int  # the rank that writes for this process's machine, or for all
    value: Any = None
    error: str | None = None


class Crew:
    """All processes, in a group of their own: a thread may exchange in it while the training uses the other."""

    def __init__(self, world: World, on_each_machine: bool = False) -> None:
        self.world = world
        self.leader = world.rank - world.local_rank if on_each_machine else 0
        self.is_leader = world.rank == self.leader
        # Checking the files of a checkpoint is divided over the processes that see the same file system.
        self.share = world.local_rank if on_each_machine else world.rank
        self.shares = world.local_size if on_each_machine else world.size
        self._group: Any = None

    def meet(self) -> None:
        """Make the group. Every process must call it, from the thread that all exchange in."""
        if self._group is None and is_joined():  # also of one process, if the script has put it into a group
            self._group = dist.new_group(backend=HOST_BACKEND)

    def tell(self, value: Any = None, error: BaseException | None = None) -> list[Told]:
        """What every process told, in rank order."""
        own = Told(self.leader, value, None if error is None else f"{type(error).__name__}: {error}")
        if self.world.size == 1:
            return [own]
        received: list[Any] = [None] * self.world.size
        dist.all_gather_object(received, own, group=self._group)
        return received

    def ours(self, told: list[Told]) -> list[Told]:
        """What was told by the processes that share this one's leader."""
        return [item for item in told if item.leader == self.leader]

    @property
    def group(self) -> Any:
        """The process group; None where there is none."""
        return self._group


def failures(told: list[Told]) -> list[str]:
    """What went wrong on any process, a line each."""
    return [f"rank {rank}: {item.error}" for rank, item in enumerate(told) if item.error is not None]
