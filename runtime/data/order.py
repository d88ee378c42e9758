"""The original loader's samples in order, the same on every process.

The order of the samples must not depend on the number of processes, and every process draws from its own generators
exactly what the plain program draws, at the same moment. So where ranks could disagree rank 0's order is the one that
is used, and each rank's own sampler is gone through beside it: nothing is exchanged for a sequential sampler, one seed
per epoch for shuffling, the state of the generator where the sampler draws from one, and the indices themselves for any
other sampler. No process's random state is ever replaced by another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler

from runtime.collectives import broadcast_object, broadcast_tensors
from runtime.data.pieces import Pieces, drawn, is_known, sequence
from runtime.data.seeded import SeedableRandomSampler
from runtime.errors import AcceleratorError
from runtime.messages import BEGINNING
from runtime.world import World

LARGEST_CHUNK = 64  # batches of another sampler that rank 0 tells at once


def known_sampler(loader: DataLoader[Any]) -> Any | None:
    """The sampler whose order can be had in pieces, if the loader's batches are cut from it; else None."""
    batches = loader.batch_sampler
    if batches is not None and type(batches) is not BatchSampler:
        return None
    sampler = loader.sampler if batches is None else batches.sampler
    return sampler if is_known(sampler) else None


def agreed_pieces(sampler: Any, world: World) -> Pieces:
    """The order of a known sampler, agreed on by all.

    Lazy: nothing is drawn or exchanged before the first piece is asked for.
    """
    if type(sampler) is SequentialSampler:
        yield from sequence(len(sampler.data_source))
    elif type(sampler) is SeedableRandomSampler:
        sampler.agree(world)
        yield from drawn(sampler, sampler.drawing())
        sampler.set_epoch(sampler.epoch + 1)
    elif type(sampler) is RandomSampler and sampler.generator is None:
        seed = torch.empty((), dtype=torch.int64).random_()  # as RandomSampler.__iter__ does
        # By itself, once an epoch: a message that also says what it is takes six times as long.
        broadcast_tensors(world, [seed], call=BEGINNING)
        yield from drawn(sampler, torch.Generator().manual_seed(int(seed)))
    else:
        yield from _in_step(sampler, sampler.generator or torch.default_generator, world)


def _in_step(sampler: Any, own: torch.Generator, world: World) -> Iterator[Tensor]:
    """What rank 0's generator gives, while the own one is used as the sampler would use it."""
    state = own.get_state()
    shared = state.clone()
    broadcast_tensors(world, [shared], call=BEGINNING)
    if torch.equal(state, shared):
        yield from drawn(sampler, own)
        return
    advancing, generator = drawn(sampler, own), torch.Generator()
    generator.set_state(shared)
    for piece in drawn(sampler, generator):
        next(advancing, None)
        yield piece
    for _ in advancing:  # a sampler may draw once more when it finds its end
        pass


def agreed(own: Iterable[Any], world: World) -> Iterator[Any]:
    """What any other sampler yields (indices or batches of indices): rank 0's.

    Told in chunks that grow, so that leaving early costs little.

    Raises:
        AcceleratorError: on the other ranks, when rank 0's sampler raised.
    """
    advancing = iter(own)
    size = 1
    while True:
        chunk, failure = _next_chunk(advancing, size)
        chunk, is_over, problem = broadcast_object(
            world, (chunk, len(chunk) < size, failure and repr(failure)), BEGINNING
        )
        yield from chunk
        if failure is not None and world.rank == 0:
            raise failure
        if problem is not None:
            raise AcceleratorError(f"the sampler failed on rank 0: {problem}")
        if is_over:
            return
        size = min(2 * size, LARGEST_CHUNK)


def _next_chunk(source: Iterator[Any], size: int) -> tuple[list[Any], Exception | None]:
    chunk: list[Any] = []
    try:
        chunk.extend(islice(source, size))
    except Exception as error:  # noqa: BLE001  the other ranks are waiting and must hear of it
        return chunk, error
    return chunk, None
