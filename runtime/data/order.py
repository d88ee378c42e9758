"""The original loader's batches of indices, the same on every process.

The order of the samples must not depend on the number of processes, and every process draws from its own generators
exactly what the plain program draws, at the same moment. So each rank goes through its own sampler, and where ranks
could disagree rank 0's order is the one that is used: nothing is exchanged for a sequential sampler, one seed per epoch
for shuffling, the state of the generator where the sampler has one, and the indices themselves for any other sampler.
No process's random state is ever replaced by another's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler

from runtime.collectives import broadcast_object, broadcast_tensors
from runtime.data.seeded import SeedableRandomSampler
from runtime.errors import AcceleratorError
from runtime.world import World

LARGEST_CHUNK = 64  # batches of another sampler that rank 0 tells at once


def agreed(loader: DataLoader[Any], world: World) -> Iterator[Any]:
    """What `loader`'s index sampler yields (batches of indices, or indices with batch_size=None), agreed on by all.

    Lazy: nothing is drawn or exchanged before the first element is asked for.
    """
    if loader.batch_sampler is None:
        yield from _agreed_samples(loader.sampler, world)
    elif type(loader.batch_sampler) is BatchSampler and _is_known(loader.batch_sampler.sampler):
        yield from _agreed_batches(loader.batch_sampler, world)
    else:
        yield from _told(loader.batch_sampler, world)


def _is_known(sampler: object) -> bool:
    return type(sampler) in (SequentialSampler, RandomSampler, SeedableRandomSampler)


def _agreed_samples(sampler: Any, world: World) -> Iterator[Any]:
    if not _is_known(sampler):
        return _told(sampler, world)
    if type(sampler) is SequentialSampler:
        return iter(sampler)
    if type(sampler) is SeedableRandomSampler:
        return _seeded(sampler, world)
    return _shuffled(sampler, sampler, lambda shared: shared, world)


def _agreed_batches(batches: BatchSampler, world: World) -> Iterator[list[int]]:
    if type(batches.sampler) is SequentialSampler:
        return iter(batches)
    size, drop_last = batches.batch_size, batches.drop_last
    if type(batches.sampler) is SeedableRandomSampler:
        return iter(BatchSampler(_seeded(batches.sampler, world), size, drop_last))
    return _shuffled(batches.sampler, batches, lambda shared: BatchSampler(shared, size, drop_last), world)


def _shuffled(
    sampler: Any, own: Iterable[Any], around: Callable[[RandomSampler], Iterable[Any]], world: World
) -> Iterator[Any]:
    shared = around(_like(sampler, _shared_generator(sampler, world)))
    if sampler.generator is None:
        return iter(shared)  # the seed was drawn already; the sampler itself would draw another
    return _in_step(own, shared, world)


def _seeded(sampler: SeedableRandomSampler, world: World) -> Iterator[int]:
    seed = torch.tensor(sampler.initial_seed + sampler.epoch)
    broadcast_tensors(world, [seed])
    return sampler.drawn(int(seed))


def _like(sampler: RandomSampler, generator: torch.Generator) -> RandomSampler:
    """The same sampler over another generator."""
    return RandomSampler(sampler.data_source, sampler.replacement, sampler.num_samples, generator)


def _shared_generator(sampler: RandomSampler, world: World) -> torch.Generator:
    """A generator that gives every rank the order of rank 0's sampler; draws what the sampler itself would draw."""
    own = sampler.generator
    shared = torch.Generator("cpu" if own is None else own.device)
    if own is None:
        seed = torch.empty((), dtype=torch.int64).random_()  # as RandomSampler.__iter__ does
        broadcast_tensors(world, [seed])
        shared.manual_seed(int(seed))
    else:
        state = own.get_state()
        broadcast_tensors(world, [state])
        shared.set_state(state)
    return shared


def _in_step(own: Iterable[Any], shared: Iterable[Any], world: World) -> Iterator[Any]:
    """The shared elements, while the own sampler advances beside them and uses its generator as it always did."""
    if world.rank == 0:
        yield from own
        return
    advancing = iter(own)
    for element in shared:
        next(advancing, None)
        yield element
    next(advancing, None)  # a sampler may draw once more when it finds its end


def _told(own: Iterable[Any], world: World) -> Iterator[Any]:
    """The elements of rank 0's sampler, told in chunks that grow, so that leaving early costs little.

    Raises:
        AcceleratorError: on the other ranks, when rank 0's sampler raised.
    """
    advancing = iter(own)
    size = 1
    while True:
        chunk, failure = _next_chunk(advancing, size)
        chunk, is_over, problem = broadcast_object(world, (chunk, len(chunk) < size, failure and repr(failure)))
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
