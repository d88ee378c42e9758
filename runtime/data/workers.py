"""Random numbers of loader workers: each process augments in its own way.

PyTorch seeds worker i with a number that the main process draws, plus i. That draw is the same on every process of a
program with one seed, so the workers of all processes would augment alike. Here the seeds of rank r come after those of
the ranks before it; those of rank 0 are the original's.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import get_worker_info


@dataclass(frozen=True, slots=True)
class OwnSeed:
    """A `worker_init_fn` that seeds a worker of this rank, and then does what the program's own one does."""

    rank: int
    then: Callable[[int], Any] | None

    def __call__(self, worker: int) -> None:
        info = get_worker_info()
        assert info is not None
        if self.rank:
            seed = info.seed + self.rank * info.num_workers
            random.seed(seed)
            torch.manual_seed(seed)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed(seed % 2**32)
        if self.then is not None:
            self.then(worker)
