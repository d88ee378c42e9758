"""The states of the random number generators of a process, in the form of Accelerate."""

from __future__ import annotations

import hashlib
import importlib.util
import random
from typing import Any

import torch

from runtime.devices import Device


def states(device: Device) -> dict[str, Any]:
    """The state of every generator that a script draws from without naming one."""
    found: dict[str, Any] = {"step": 0, "random_state": random.getstate(), "torch_manual_seed": torch.get_rng_state()}
    if importlib.util.find_spec("numpy") is not None:
        import numpy as np

        found["numpy_random_seed"] = np.random.get_state()  # noqa: NPY002  the generator that scripts use
    return found | device.random_states()


def restore(found: dict[str, Any], device: Device) -> None:
    """Put the generators into these states; those of another kind of device stay as they are."""
    version, internal, gauss = found["random_state"]
    random.setstate((version, tuple(internal), gauss))
    torch.set_rng_state(found["torch_manual_seed"])
    if "numpy_random_seed" in found and importlib.util.find_spec("numpy") is not None:
        import numpy as np

        np.random.set_state(found["numpy_random_seed"])  # noqa: NPY002
    device.set_random_states(found)


def derived(first: dict[str, Any], rank: int) -> int:
    """A seed for a process that was not there, from the states of rank 0: the same whenever this is loaded."""
    state = bytes(first["torch_manual_seed"].tolist())
    return int.from_bytes(hashlib.sha256(state + rank.to_bytes(8, "little")).digest()[:4], "little")
