"""One seed for every generator a training script uses."""

from __future__ import annotations

import importlib.util
import os
import random

import torch

from runtime.devices import kinds_here
from runtime.world import World


def set_seed(seed: int, device_specific: bool = False, deterministic: bool = False) -> None:
    """Seed `random`, NumPy where it is installed, and PyTorch on every device.

    Args:
        seed: the same on all processes gives all of them the same random numbers.
        device_specific: add the process's rank, so that each process has numbers of its own (augmentation, dropout).
        deterministic: also make PyTorch use deterministic algorithms, or raise where there is none.
    """
    if device_specific:
        seed += World.from_environment(os.environ).rank
    random.seed(seed)
    if importlib.util.find_spec("numpy") is not None:
        import numpy as np  # here, because the runtime does not depend on it

        np.random.seed(seed)  # noqa: NPY002  the generator that scripts use
    torch.manual_seed(seed)
    for kind in kinds_here():
        kind.seed(seed)
    if deterministic:
        torch.use_deterministic_algorithms(True)
