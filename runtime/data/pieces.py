"""The samples of an epoch as PyTorch's samplers order them: tensors instead of lists of Python numbers.

A sampler of PyTorch makes a list of all its numbers before it hands out the first. Here the same numbers, drawn by the
same calls at the same moments, stay in the tensors they were drawn into (pieces), and of a piece only the rows that
this process needs become Python numbers, some batches at a time. What that costs does not depend on the number of
processes, and skipping samples costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import RandomSampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

from runtime.data.seeded import SeedableRandomSampler
from runtime.devices import in_host_memory

Pieces = Iterator[Tensor]

SEQUENCE = 1 << 16  # numbers of a sequence made at once
AT_ONCE = 8192  # numbers that become Python's at once


def sequence(count: int) -> Pieces:
    """0, 1, 2, ..."""
    for start in range(0, count, SEQUENCE):
        yield torch.arange(start, min(start + SEQUENCE, count))


def _shuffled(sampler: RandomSampler, generator: torch.Generator) -> Pieces:
    size, count = len(sampler.data_source), sampler.num_samples
    if sampler.replacement:
        for _ in range(count // 32):
            yield torch.randint(high=size, size=(32,), dtype=torch.int64, generator=generator)
        yield torch.randint(high=size, size=(count % 32,), dtype=torch.int64, generator=generator)
        return
    for _ in range(count // size):
        yield torch.randperm(size, generator=generator)
    if count % size or generator is sampler.generator:  # a generator of the program's own is asked once more
        yield torch.randperm(size, generator=generator)[: count % size]


def _subset(sampler: SubsetRandomSampler, generator: torch.Generator) -> Pieces:
    yield torch.randperm(len(sampler.indices), generator=generator)


def _weighted(sampler: WeightedRandomSampler, generator: torch.Generator) -> Pieces:
    yield torch.multinomial(sampler.weights, sampler.num_samples, sampler.replacement, generator=generator)


_DRAWN: dict[type[Any], Callable[[Any, torch.Generator], Pieces]] = {
    RandomSampler: _shuffled,
    SeedableRandomSampler: _shuffled,
    SubsetRandomSampler: _subset,
    WeightedRandomSampler: _weighted,
}


def is_known(sampler: object) -> bool:
    """Whether the order of `sampler` can be had in pieces: PyTorch's own classes, drawing on the CPU."""
    if type(sampler) is WeightedRandomSampler:
        return in_host_memory(sampler.weights.device)
    return type(sampler) is SequentialSampler or type(sampler) in _DRAWN


def drawn(sampler: Any, generator: torch.Generator) -> Pieces:
    """What `sampler`, which draws, would hand out with this generator; drawn when it is asked for."""
    return _DRAWN[type(sampler)](sampler, generator)


def names_of(sampler: object) -> Sequence[Any] | None:
    """What the numbers in the pieces stand for, where they are not the indices themselves."""
    return sampler.indices if type(sampler) is SubsetRandomSampler else None


def after(pieces: Pieces, skip: int) -> Pieces:
    """The pieces without the first `skip` numbers."""
    return _after(pieces, skip) if skip else pieces


def _after(pieces: Pieces, skip: int) -> Pieces:
    for piece in pieces:
        if skip >= piece.numel():
            skip -= piece.numel()
        elif skip:
            yield piece[skip:]
            skip = 0
        else:
            yield piece


class Head:
    """Keeps the first numbers of the pieces that pass by."""

    __slots__ = ("_count", "_kept", "_pieces")

    def __init__(self, pieces: Pieces, count: int) -> None:
        self._pieces = pieces
        self._count = count
        self._kept: list[Tensor] = []

    def __iter__(self) -> Pieces:
        """The pieces, as they are."""
        missing = self._count
        for piece in self._pieces:
            if missing > 0:
                self._kept.append(piece)
                missing -= piece.numel()
            yield piece

    def numbers(self) -> list[int]:
        """The first numbers, as many as have passed."""
        return torch.cat(self._kept)[: self._count].tolist()


class Windows:
    """The rows from `start` to `stop` of every `size` numbers, some windows at a time."""

    __slots__ = ("_bounds", "_pieces", "_size", "rest")

    def __init__(self, pieces: Iterable[Tensor], size: int, start: int, stop: int) -> None:
        self._pieces = pieces
        self._size = size
        self._bounds = (start, stop)
        self.rest: list[int] = []  # after the last window: all numbers that are left, fewer than `size`

    def __iter__(self) -> Iterator[list[list[int]]]:
        size, (start, stop) = self._size, self._bounds
        held: list[Tensor] = []
        count = 0
        for piece in self._pieces:
            held.append(piece)
            count += piece.numel()
            if count < size:
                continue
            joined = piece if len(held) == 1 else torch.cat(held)
            whole = count // size
            own = joined[: whole * size].view(whole, size)
            if stop - start < size:
                own = own[:, start:stop]
            at, some, most = 0, 4, max(AT_ONCE // (stop - start), 1)
            while at < whole:
                yield own[at : at + some].tolist()
                at += some
                some = min(2 * some, most)
            count -= whole * size
            held = [joined[whole * size :]]
        self.rest = [number for piece in held for number in piece.tolist()]
