"""The random numbers that the order of an epoch comes from: kept at its start, so that the order can be had again.

PyTorch's shuffling draws a seed from the global generator when the first batch is asked for. So what has to be kept is
the state of the generators as it was when the epoch began: the global one of PyTorch, those that the loader and its
samplers were given, and those of `random` and NumPy where the order comes from code that is not PyTorch's. A state is
made of tensors, tuples and numbers, as `torch.load(weights_only=True)` reads them.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from runtime.data.seeded import SeedableRandomSampler

State = dict[str, Any]


class Draws:
    """The generators that a loader's order may come from."""

    __slots__ = ("_own", "_seeded", "_with_others")

    def __init__(self, base: DataLoader[Any], *, with_others: bool) -> None:
        inside: list[Any] = [base, base.sampler, base.batch_sampler, getattr(base.batch_sampler, "sampler", None)]
        if isinstance(base.dataset, IterableDataset):
            inside.append(base.dataset)  # is gone through again; one of another kind augments with its generator
        found = (getattr(part, "generator", None) for part in inside if not isinstance(part, SeedableRandomSampler))
        own = {id(g): g for g in found if isinstance(g, torch.Generator) and g is not torch.default_generator}
        self._own: list[torch.Generator] = list(own.values())
        self._seeded = next((part for part in inside if isinstance(part, SeedableRandomSampler)), None)
        self._with_others = with_others

    def state(self) -> State:
        """Where all of them stand."""
        kept = self.everybodys()
        if self._own:
            kept["own"] = [generator.get_state() for generator in self._own]
        if self._seeded is not None:
            kept["seed"] = (self._seeded.initial_seed, self._seeded.epoch)
        return kept

    def restore(self, kept: State) -> None:
        """Take all of them, or those that `kept` has, to where it was taken."""
        self.restore_everybodys(kept)
        self.restore_own(kept)

    def restore_own(self, kept: State) -> None:
        """Take back those that belong to the loader."""
        for generator, state in zip(self._own, kept.get("own", ()), strict=False):
            generator.set_state(state)
        if self._seeded is not None and "seed" in kept:
            self._seeded.initial_seed, self._seeded.epoch = kept["seed"]

    def everybodys(self) -> State:
        """Where those stand that the whole program draws from."""
        kept: State = {"torch": torch.get_rng_state()}
        if self._with_others:
            kept["python"] = random.getstate()
            if "numpy" in sys.modules:
                name, keys, *others = sys.modules["numpy"].random.get_state()
                kept["numpy"] = (name, torch.from_numpy(keys.astype("int64")), *others)
        return kept

    @staticmethod
    def restore_everybodys(kept: State) -> None:
        """Take back those that the whole program draws from."""
        if "torch" in kept:
            torch.set_rng_state(kept["torch"])
        if "python" in kept:
            version, numbers, gauss = kept["python"]
            random.setstate((version, tuple(numbers), gauss))
        if "numpy" in kept and "numpy" in sys.modules:
            name, keys, *others = kept["numpy"]
            sys.modules["numpy"].random.set_state((name, keys.numpy().astype("uint32"), *others))
