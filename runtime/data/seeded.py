"""`use_seedable_sampler`: the order of an epoch follows from a seed and the number of the epoch, and from nothing else.

It is the order in which a `DistributedSampler` of the same seed hands out all samples, and no generator but its own is
asked for numbers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sized
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

from runtime.world import World


class SeedableRandomSampler(RandomSampler):
    """Shuffles with a generator that is seeded with `data_seed + epoch`; a whole pass takes it to the next epoch.

    Args:
        generator: the one that is seeded; None: a new one for every pass.
        data_seed: None: the seed that PyTorch's generator started with.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
        *,
        data_seed: int | None = None,
    ) -> None:
        super().__init__(data_source, replacement, num_samples, generator or torch.Generator())
        self._given = generator
        self.initial_seed = torch.random.initial_seed() if data_seed is None else data_seed
        self.epoch = 0
        self._is_agreed = False

    def agree(self, world: World) -> None:
        """Take rank 0's seed. After that nothing is exchanged: every process counts the epochs by itself."""
        if world.size == 1 or self._is_agreed:
            return
        from runtime.collectives import broadcast  # one process does without
        from runtime.messages import BEGINNING

        seed = torch.tensor([self.initial_seed >> 32, self.initial_seed & 0xFFFFFFFF])  # up to 64 bits, no sign
        broadcast(world, seed, call=BEGINNING)
        high, low = seed.tolist()
        self.initial_seed, self._is_agreed = (high << 32) + low, True

    def drawing(self) -> torch.Generator:
        """The generator that this epoch's order is drawn from."""
        generator = torch.Generator() if self._given is None else self._given
        return generator.manual_seed(self.initial_seed + self.epoch)

    def __iter__(self) -> Iterator[int]:
        yield from RandomSampler(self.data_source, self.replacement, self.num_samples, self.drawing())
        self.set_epoch(self.epoch + 1)

    def set_epoch(self, epoch: int) -> None:
        """The next pass is this epoch."""
        self.epoch = epoch


def seeded(loader: DataLoader[Any], seed: int | None) -> DataLoader[Any]:
    """The loader, with a seedable sampler where it shuffles; others come back as they are."""
    batches = loader.batch_sampler
    sampler = loader.sampler if batches is None else getattr(batches, "sampler", None)
    if type(sampler) is not RandomSampler or (batches is not None and type(batches) is not BatchSampler):
        return loader
    new = SeedableRandomSampler(sampler.data_source, sampler.replacement, sampler.num_samples, data_seed=seed)
    result = copy.copy(loader)
    vars(result)["sampler"] = new  # a loader does not let these be set once it is made
    if batches is not None:
        vars(result)["batch_sampler"] = BatchSampler(new, batches.batch_size, batches.drop_last)
    return result
