"""`dispatch_batches=True`: one process reads the data and sends every other its share, and nothing else.

For sources that can be read once only, or by one process. A step is a message of numbers to all (does it go on, how
large are the parts), a scatter of the parts, and a description of the batch where that is not what it was in the step
before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import DataLoader

from runtime.collectives import broadcast_object, broadcast_tensors
from runtime.data.feeds import Dealing, Feed, Steps
from runtime.data.passes import Purpose
from runtime.data.plan import Share, whole_batch
from runtime.data.rows import cut_up, row_count
from runtime.errors import AcceleratorError, ConfigurationError
from runtime.messages import BATCH, aligned, aligned_bytes_of
from runtime.tree import leaves, with_leaves
from runtime.world import World

OVER, FAILED, SAME, OTHER = range(4)  # what the next step is: none, none by an error, one (of another form)


@dataclass(frozen=True, slots=True)
class Form:
    """What a batch is made of, beside the sizes and values of its tensors."""

    skeleton: Any  # the batch with its tensors replaced by None, and objects in their place
    dtypes: tuple[torch.dtype | None, ...]  # of the leaves; None: an object
    dims: tuple[int, ...]


class Dispatch(Feed):
    """Rank 0 goes through the original loader; the others get their parts from it."""

    def __init__(self, base: DataLoader[Any], world: World, dealing: Dealing, alone: Feed) -> None:
        super().__init__(base, world, replace(dealing, even=True))  # all get something in every step
        self._alone = alone  # the loader on one process
        self._is_begun = False

    @property
    def starts_workers(self) -> bool:
        return not (self._is_begun and self.base.persistent_workers)

    @contextmanager
    def as_if(self, starts_workers: bool) -> Iterator[None]:
        with self._alone.as_if(starts_workers):
            yield

    def open(self, purpose: Purpose, since: int = 0) -> Steps:
        draws, self._is_begun = self.starts_workers, True
        if self.world.rank == 0:
            return _sending(self._parts(self._alone.open(purpose, since), purpose), self.world)
        if draws:  # as the iterator on rank 0
            torch.empty((), dtype=torch.int64).random_(generator=self.base.generator)
        return _receiving(self.world)

    def _parts(self, steps: Steps, purpose: Purpose) -> Iterator[tuple[list[Any], Share]]:
        batches = (batch for batch, _ in steps)
        ranks, cut = range(self.world.size), self.shares_out(purpose)
        if purpose is Purpose.WHOLE:
            return (([batch for _ in ranks], whole_batch(row_count(batch) or 1, len(ranks))) for batch in batches)
        return (cut_up(batch, ranks, len(ranks)) for batch in batches) if cut else self._dealt(batches)

    def _dealt(self, batches: Iterator[Any]) -> Iterator[tuple[list[Any], Share]]:
        world = self.world.size
        first: list[Any] = []
        while group := list(islice(batches, world)):
            first = first or group
            missing = world - len(group)
            if missing and self.drops_last:
                return
            parts = [*group, *(first[i % len(first)] for i in range(missing))]
            rows = tuple(row_count(batch) or 1 for batch in parts)
            yield parts, Share(rows, (*rows[: len(group)], *(0,) * missing), is_one_batch=False)


def _sending(steps: Iterator[tuple[list[Any], Share]], world: World) -> Steps:
    known: Form | None = None
    try:
        for parts, share in steps:
            form = _form(parts)
            packed = [_packed(piece) for piece in parts]
            size = max(piece.numel() for piece in packed)
            is_known = _are_alike(form, known)
            _tell(world, SAME if is_known else OTHER, size, share)
            if not is_known:
                known = broadcast_object(world, form, BATCH)
            sent = [torch.nn.functional.pad(piece, (0, size - piece.numel())).to(world.device) for piece in packed]
            dist.scatter(torch.empty(size, dtype=torch.uint8, device=world.device), sent, src=0)
            yield parts[0], share
    except Exception as error:
        _tell(world, FAILED)
        broadcast_object(world, repr(error), BATCH)
        raise
    _tell(world, OVER)


def _receiving(world: World) -> Steps:
    form: Form | None = None
    while True:
        what, size, share = _told(world)
        if what == OVER:
            return
        if what == FAILED:
            raise AcceleratorError(f"the loader failed on rank 0: {broadcast_object(world, None, BATCH)}")
        if what == OTHER:
            form = broadcast_object(world, None, BATCH)
        assert form is not None
        piece = torch.empty(size, dtype=torch.uint8, device=world.device)
        dist.scatter(piece, None, src=0)
        yield _unpacked(piece, form), share


def _tell(world: World, what: int, size: int = 0, share: Share | None = None) -> None:
    counts = (0,) * (2 * world.size) if share is None else (*share.rows, *share.valid)
    is_one = share is not None and share.is_one_batch
    broadcast_tensors(world, [torch.tensor([what, size, is_one, *counts], device=world.device)], call=BATCH)


def _told(world: World) -> tuple[int, int, Share]:
    message = torch.zeros(3 + 2 * world.size, dtype=torch.int64, device=world.device)
    broadcast_tensors(world, [message], call=BATCH)
    what, size, is_one, *counts = message.tolist()
    return what, size, Share(tuple(counts[: world.size]), tuple(counts[world.size :]), is_one_batch=bool(is_one))


def _form(parts: list[Any]) -> Form:
    """The form that all parts have."""
    found = [_form_of(piece) for piece in parts]
    if not all(form is found[0] or _are_alike(form, found[0]) for form in found):
        raise ConfigurationError(
            "dispatch_batches=True needs batches of one form, and two of one round differ in their keys, in their "
            "dtypes or in what is no tensor. Make everything in a batch a tensor, or leave dispatch_batches out."
        )
    return found[0]


def _are_alike(one: Form, other: Form | None) -> bool:
    try:
        return one == other
    except ValueError:  # arrays of NumPy, which are compared number by number
        return False


def _form_of(batch: Any) -> Form:
    inside = list(leaves(batch))
    tensors = [leaf if isinstance(leaf, Tensor) else None for leaf in inside]
    objects = [None if isinstance(leaf, Tensor) else leaf for leaf in inside]
    return Form(
        with_leaves(batch, iter(objects)),
        tuple(None if tensor is None else tensor.dtype for tensor in tensors),
        tuple(0 if tensor is None else tensor.ndim for tensor in tensors),
    )


def _packed(piece: Any) -> Tensor:
    """The sizes and then the values of the tensors, as bytes."""
    tensors = [leaf for leaf in leaves(piece) if isinstance(leaf, Tensor)]
    sizes = torch.tensor([size for tensor in tensors for size in tensor.shape], dtype=torch.int64)
    return torch.cat([aligned_bytes_of(tensor, sizes.device) for tensor in (sizes, *tensors)])


def _unpacked(piece: Tensor, form: Form) -> Any:
    at = aligned(8 * sum(form.dims))
    sizes = iter(piece[: 8 * sum(form.dims)].view(torch.int64).tolist())
    values: list[Any] = []
    for leaf, dtype, dims in zip(leaves(form.skeleton), form.dtypes, form.dims, strict=True):
        if dtype is None:
            values.append(leaf)
            continue
        shape = torch.Size(islice(sizes, dims))
        length = shape.numel() * dtype.itemsize
        values.append(piece[at : at + length].view(dtype).reshape(shape))
        at += aligned(length)
    return with_leaves(form.skeleton, iter(values))
