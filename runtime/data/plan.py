"""Which rows a process computes in each step, and which of them count.

Two ways to divide the batches of the original loader, both pure functions of the stream of batches:

* *sharing out* (evaluation, and training with `split_batches`): every batch is cut into contiguous parts, one per
  rank, whose sizes differ by at most one. Joined in rank order the parts are the batch again. A rank that would be
  left without a row gets a copy of a real one that does not count.
* *dealing* (training): batch i goes to rank i % world. The last round is completed with samples from the start of the
  epoch, which do not count either, so that all ranks take the same number of steps.

`Share` says, for every rank, how many rows it holds and how many of them count; they always come first. All ranks
compute the same `Share`, so nobody has to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from runtime.data.pieces import Head, Pieces, Windows, after, names_of
from runtime.split import part

Batch = Sequence[Any]  # what a batch sampler yields: the indices of the samples


@dataclass(frozen=True, slots=True)
class Share:
    """One step over all ranks: `rows[r]` rows are on rank r, the first `valid[r]` of them count."""

    rows: tuple[int, ...]
    valid: tuple[int, ...]
    is_one_batch: bool  # the ranks hold parts of one batch, so their losses weigh as many rows as they have

    def weight(self, rank: int) -> float:
        """The factor of this rank's mean with which the mean of all ranks' means is the mean over the batch."""
        total = sum(self.valid)
        if not self.is_one_batch or total == 0:
            return 1.0
        return self.valid[rank] * len(self.valid) / total


def share_of(count: int, world: int) -> Share:
    """How a batch of `count` rows is shared out."""
    bounds = [part(count, rank, world) for rank in range(world)]
    valid = tuple(stop - start for start, stop in bounds)
    rows = tuple(max(size, 1) for size in valid) if count else valid
    return Share(rows, valid, is_one_batch=True)


def whole_batch(count: int, world: int) -> Share:
    """That of a batch of `count` rows which every rank has: it counts on the first."""
    return Share((count,) * world, (count, *(0,) * (world - 1)), is_one_batch=False)


def own_rows(batch: Batch, rank: int, world: int) -> Batch:
    """The rows of `rank`; the first of the batch where there are fewer rows than ranks."""
    start, stop = part(len(batch), rank, world)
    return batch[start:stop] if stop > start else batch[:1]


def share_out(batches: Iterable[Batch], rank: int, world: int) -> Iterator[tuple[Batch, Share]]:
    """Every batch, cut into parts: the part of `rank` and the share of all."""
    known: dict[int, Share] = {}
    for batch in batches:
        count = len(batch)
        if count not in known:
            known[count] = share_of(count, world)
        yield own_rows(batch, rank, world), known[count]


def deal_rows(
    batches: Iterable[Batch], rank: int, world: int, *, size: int, even: bool, drop_last: bool, skip: int = 0
) -> Iterator[tuple[Batch, Share]]:
    """Batches of `size` indices dealt in turn; the last round is completed row by row, as Accelerate does.

    A short last batch is filled up and the missing ones are made, with the first indices of the epoch, again and again
    if they are fewer. With `drop_last` an incomplete round is left out; without `even` it is handed out as it is, and
    some ranks take one step less. The first `skip` batches are left out.
    """
    full = Share((size,) * world, (size,) * world, is_one_batch=False)
    source = iter(batches)
    first = [index for number, batch in enumerate(islice(source, skip)) if number < world for index in batch]
    for group in _rounds(source, world):
        first += [index for batch in group for index in batch][: size * world - len(first)]
        if len(group) == world and len(group[-1]) == size:
            yield group[rank], full
            continue
        if drop_last:
            return
        yield from _last_round(group, first, rank, world, size=size, even=even)


def _last_round(
    group: Sequence[Batch], first: Iterable[Any], rank: int, world: int, *, size: int, even: bool
) -> Iterator[tuple[Batch, Share]]:
    """The own batch of a round that is not complete, filled up with the first indices of the epoch if `even`."""
    if not even:
        if rank < len(group):
            yield group[rank], _incomplete([len(batch) for batch in group], world)
        return
    valid = tuple(len(batch) for batch in group) + (0,) * (world - len(group))
    filling = cycle(first)
    whole = [[*batch, *islice(filling, size - len(batch))] for batch in [*group, *[[]] * (world - len(group))]]
    yield whole[rank], Share((size,) * world, valid, is_one_batch=False)


def deal_pieces(
    pieces: Pieces, rank: int, world: int, *, size: int, even: bool, drop_last: bool, skip: int = 0
) -> Iterator[tuple[Batch, Share]]:
    """`deal_rows` of the batches of `size` that the pieces are cut into, without the first `skip` samples.

    A step costs what its own batch costs, at any number of processes.
    """
    full = Share((size,) * world, (size,) * world, is_one_batch=False)
    head = Head(pieces, size * world)
    own = Windows(after(iter(head), skip), size * world, rank * size, (rank + 1) * size)
    for some in own:
        for batch in some:
            yield batch, full
    if not own.rest or drop_last:
        return
    group = [own.rest[start : start + size] for start in range(0, len(own.rest), size)]
    yield from _last_round(group, head.numbers(), rank, world, size=size, even=even)


def share_pieces(
    pieces: Pieces, rank: int, world: int, *, size: int, drop_last: bool, skip: int = 0
) -> Iterator[tuple[Batch, Share]]:
    """`share_out` of the batches of `size` that the pieces are cut into, without the first `skip` samples."""
    start, stop = part(size, rank, world)
    own = Windows(after(pieces, skip), size, *((start, stop) if stop > start else (0, 1)))
    full = share_of(size, world)
    for some in own:
        for batch in some:
            yield batch, full
    if own.rest and not drop_last:
        yield own_rows(own.rest, rank, world), share_of(len(own.rest), world)


def deal_whole(
    items: Iterable[Any],
    rank: int,
    world: int,
    *,
    even: bool,
    drop_last: bool = False,
    count: Callable[[Any], int] = len,
    skip: int = 0,
) -> Iterator[tuple[Any, Share]]:
    """Items dealt in turn, whatever they are; the last round is completed with whole items from the start.

    For batch samplers whose batches have no fixed size, for streams (of batches or of samples), and for loaders whose
    inside is not known. `count` says how many rows an item has. The first `skip` items are left out.
    """
    first: list[Any] = []  # the items that this rank may need again at the end
    first_counts: list[int] = []
    counts: list[int] = []  # of the items of this round
    own: Any = None
    for number, item in enumerate(items):
        rows = count(item)
        if len(first_counts) < world:
            first_counts.append(rows)
        if len(first) < min(max(rank, 1), len(first_counts)):
            first.append(item)
        if number < skip:
            continue
        counts.append(rows)
        if len(counts) == rank + 1:
            own = item
        if len(counts) == world:
            yield own, Share(tuple(counts), tuple(counts), is_one_batch=False)
            counts, own = [], None
    missing = world - len(counts)
    if not counts or drop_last:
        return
    if even:
        again = [first_counts[i % len(first_counts)] for i in range(missing)]
        mine = own if rank < len(counts) else first[(rank - len(counts)) % len(first_counts)]
        yield mine, Share((*counts, *again), (*counts, *(0,) * missing), is_one_batch=False)
    elif rank < len(counts):
        yield own, _incomplete(counts, world)


def _rounds(items: Iterable[Any], world: int) -> Iterator[list[Any]]:
    source = iter(items)
    while group := list(islice(source, world)):
        yield group


def _incomplete(counts: list[int], world: int) -> Share:
    held = (*counts, *(0,) * (world - len(counts)))
    return Share(held, held, is_one_batch=False)


def dealt_steps(batches: int, world: int, *, drop_last: bool, even: bool, rank: int) -> int:
    """The number of steps of `rank` when `batches` batches are dealt."""
    if drop_last:
        return batches // world
    if even:
        return -(-batches // world)
    return batches // world + (rank < batches % world)


def named(plan: Iterable[tuple[Any, Share]], sampler: Any, *, is_single: bool) -> Iterator[tuple[Any, Share]]:
    """The plan of a known sampler with the indices that its numbers stand for; single ones without batches."""
    names = names_of(sampler)
    if names is None and not is_single:
        return iter(plan)
    if names is None:
        return ((numbers[0], share) for numbers, share in plan)
    if is_single:
        return ((names[numbers[0]], share) for numbers, share in plan)
    return (([names[number] for number in numbers], share) for numbers, share in plan)
