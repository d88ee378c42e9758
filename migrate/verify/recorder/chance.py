"""Whether random numbers were drawn: what all generators of a program stand at, before and after."""

from __future__ import annotations

import random
import sys
import zlib

import torch


def standing() -> bytes:
    """A checksum of the states of all generators; another one means that something was drawn."""
    states = [torch.get_rng_state().numpy().tobytes(), repr(random.getstate()[1]).encode()]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states.append(repr(numpy.random.get_state()[1:3]).encode())
        states.append(numpy.random.get_state()[1].tobytes())
    result = 0
    for state in states:
        result = zlib.crc32(state, result)
    return result.to_bytes(4, "big")
