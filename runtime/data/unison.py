"""What every process reads for itself, and all have to read alike: with the random numbers of rank 0.

A stream that shuffles (a buffer, a permutation at its start) draws from the generators that the whole program uses.
These stand elsewhere on each process: nobody has seeded `random`, or a layer has drawn more where a batch was larger.
Each process would read another order then, and keep its share of that one: samples would come twice, or not at all.

So a pass begins where the generators of rank 0 stand, and from there only the stream moves on what it draws from. What
the program draws in between is its own: a generator that both have drawn from is two, one for each. One that nobody
else has touched stays one, so on rank 0 it goes on as it does on one process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import torch

from runtime.collectives import all_objects, broadcast_object
from runtime.data.draws import Draws
from runtime.messages import BEGINNING
from runtime.telling import tell
from runtime.tree import leaves
from runtime.world import World

T = TypeVar("T")


class Unison(Iterator[Any]):
    """The items of an iterator that is made, and gone through, with random numbers that are those of rank 0."""

    __slots__ = ("_draws", "_items", "_state")

    def __init__(self, draws: Draws, world: World, start: Callable[[], Iterator[Any]]) -> None:
        self._draws = draws
        self._state = broadcast_object(world, draws.state(), BEGINNING)
        self._items = self._drawing(start)

    def __next__(self) -> Any:
        return self._drawing(partial(next, self._items))

    def _drawing(self, read: Callable[[], T]) -> T:
        found, before = self._draws.state(), self._state
        others = {kind: found[kind] for kind in before if not _are_same(found[kind], before[kind])}
        self._draws.restore({kind: before[kind] for kind in others})
        try:
            return read()
        finally:
            self._state = self._draws.state()
            self._draws.restore(others)


def _are_same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, (list, tuple)) and any(isinstance(part, torch.Tensor) for part in one):
        return all(map(_are_same, one, other))
    return bool(one == other)


def warn_if_apart(world: World, item: Any, what: str) -> None:
    """Say so on the main process if the processes have read different items, whatever generators of PyTorch say."""
    digest = hashlib.sha256()
    for leaf in leaves(item):
        digest.update(_content(leaf))
    if len(set(all_objects(world, digest.hexdigest(), BEGINNING))) > 1 and world.rank == 0:
        tell(
            f"the processes have read different first samples of a {what}: it draws from a generator of its own that "
            "is seeded differently on each, or gives each process its part by itself. Each keeps its share of what it "
            "has read, so samples come twice or not at all, unless they are only changed at random. Seed that "
            "generator alike, or let the main process read: DataLoaderConfiguration(dispatch_batches=True). One that "
            "shares its data out by itself is used as it is if it has attributes num_replicas and rank."
        )


def _content(leaf: Any) -> bytes:
    if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided:
        return leaf.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
    if hasattr(leaf, "tobytes"):  # an array or number of NumPy
        return bytes(leaf.tobytes())
    is_plain = isinstance(leaf, (str, bytes, int, float, complex))
    return (repr(leaf) if is_plain else type(leaf).__name__).encode()  # the texts of objects tell where they are
