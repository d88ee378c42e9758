"""What a DistributedSampler says of the order of the samples, which the loader says afterwards."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batches:
    """`BatchSampler(sampler, size, drop_last)`."""

    call: ast.Call
    size: ast.expr
    drops_last: ast.expr


@dataclass(frozen=True, slots=True)
class Order:
    """What a DistributedSampler does with the order of the samples."""

    call: ast.Call
    seed: str  # Python source
    shuffle: str  # Python source: "True", "False", or what decides
    batches: Batches | None = None  # the BatchSampler between it and the loader

    @property
    def shuffles(self) -> bool:
        """Whether it draws the order, or may."""
        return self.shuffle != "False"

    def is_said_by(self, shuffle: ast.expr) -> bool:
        """Whether what a loader is told of its order, beside the sampler, is that already."""
        return (str(bool(shuffle.value)) if isinstance(shuffle, ast.Constant) else ast.unparse(shuffle)) == self.shuffle
