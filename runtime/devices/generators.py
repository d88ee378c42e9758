"""Generators of random numbers that all processes can be given the main process's state of, by name."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import torch
from torch import Tensor

from runtime.devices import Cpu, kind_of
from runtime.errors import ConfigurationError


class RNGType(str, Enum):
    """A source of random numbers; "torch" is the CPU's."""

    TORCH = "torch"
    CUDA = "cuda"
    XLA = "xla"
    XPU = "xpu"
    TPU = "tpu"
    GENERATOR = "generator"


def state_of(
    rng_type: str | RNGType | None, generator: torch.Generator | None
) -> tuple[Tensor, Callable[[Tensor], object]]:
    """A copy of the state, in host memory, and the function that puts one in its place.

    Raises:
        ConfigurationError: an unknown kind, one that is not here, or "generator" without one.
    """
    known = {kind.value for kind in RNGType}
    text = str(getattr(rng_type, "value", rng_type))
    if text not in known:
        raise ConfigurationError(f"rng_type={text!r} is not known. Known: {', '.join(sorted(known))}.")
    if text == RNGType.GENERATOR.value:
        if generator is None:
            raise ConfigurationError("rng_type='generator' needs the generator: synchronize_rng_state('generator', g).")
        return generator.get_state().clone(), generator.set_state
    kind = Cpu() if text == RNGType.TORCH.value else kind_of(text)
    if not kind.is_available():
        raise ConfigurationError(f"rng_type={text!r}: this machine has no such device. Leave it out.")
    return kind.random_state().clone(), kind.set_random_state
