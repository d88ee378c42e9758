"""Variants that are measured in turns, so that other load on the machine meets all of them alike."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def in_turns(variants: Mapping[str, Callable[[], T]], rounds: int, *, warm_up: int = 1) -> dict[str, list[T]]:
    """What each variant gave in each round; the first `warm_up` rounds are not counted.

    The order is another one in each round, and the same on all ranks and in every run.
    """
    order, shuffled = list(variants), random.Random(0)  # noqa: S311  an order, no secret
    found: dict[str, list[T]] = {name: [] for name in order}
    for number in range(-warm_up, rounds):
        shuffled.shuffle(order)
        for name in order:
            result = variants[name]()
            if number >= 0:
                found[name].append(result)
    return found


def ratio(own: Sequence[float], base: Sequence[float]) -> float:
    """The median over the rounds of a variant's figure to the base's of the same round."""
    return statistics.median(a / b for a, b in zip(own, base, strict=True))
