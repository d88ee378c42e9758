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


def is_same_between(function: ast.AST, read: ast.expr, first: int, last: int) -> bool:
    """Whether nothing that an expression reads is given another value below a line of a function, and above another."""
    names = {ast.unparse(n) for n in ast.walk(read) if isinstance(n, (ast.Name, ast.Attribute))}
    return first < last and not any(
        isinstance(n, (ast.Name, ast.Attribute))
        and isinstance(n.ctx, ast.Store)
        and ast.unparse(n) in names
        and first < n.lineno < last
        for n in ast.walk(function)
    )
