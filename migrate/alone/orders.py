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
    shuffles: bool  # perhaps, if a name decides
    seed: str  # Python source
    shuffle: str = "True"  # Python source of what decides, where it does
    batches: Batches | None = None  # the BatchSampler between it and the loader

    def is_said_by(self, shuffle: ast.expr) -> bool:
        """Whether what a loader is told of its order, beside the sampler, is that already."""
        if isinstance(shuffle, ast.Constant) and self.shuffle == "True":
            return bool(shuffle.value) is self.shuffles
        return ast.unparse(shuffle) == self.shuffle
