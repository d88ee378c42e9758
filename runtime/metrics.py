"""`gather_for_metrics`: what all processes computed in a step, without the rows that do not count.

The pass that is going on knows how many rows each rank holds and how many of them count (`Share`); they come first. So
padding is dropped whatever the sampler, the shapes or the place of the call in the loop are:

* A rank none of whose rows count contributes nothing, whatever it brings (rows, a mean over its rows, an object).
* A rank some of whose rows count (a completed batch in training) contributes those, where the first dimension is rows.
* A single row whose batch dimension was squeezed away gets it back when other ranks have one dimension more.
* An array of NumPy is joined as a tensor is, and comes back as an array.

Outside of a pass, and in one whose sharing is not known, nothing is dropped; what that makes wrong is told, where it
can be seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from runtime.collectives import all_objects, concatenated, flattened, on_tensors, tensor_leaves
from runtime.data.passes import Pass
from runtime.data.plan import Share
from runtime.messages import OBJECTS, exchange
from runtime.tree import leaves, map_leaves
from runtime.world import World

ACTION = "gather_for_metrics"
_NUMBERS = "?bBhHiIlLqQefdFD"  # the characters of NumPy's dtypes


def gather_for_metrics(world: World, data: Any, share: Share | None, use_gather_object: bool = False) -> Any:
    """`data` of all processes in rank order, without padding; on one process the input, without rows that fill it up.

    Tensors are joined along their first dimension, those without dimensions become one element per rank. Other objects
    come back as one list, lists joined.

    Raises:
        CollectiveError: tensors and other objects in one container; shapes that cannot be joined.
    """
    if world.size == 1 and (share is None or share.valid == share.rows):
        return data
    if _is_array(data) and not use_gather_object:
        return gather_for_metrics(world, torch.tensor(data), share).numpy()
    if world.size == 1 and share is not None:
        return own_counting(data, share)
    if use_gather_object or _are_objects(data):
        return flattened(_counting_objects(all_objects(world, data, OBJECTS), share))

    def joined(own: list[Tensor]) -> Iterator[Tensor]:
        received = exchange(world, own, ACTION)
        all_count = share is None or share.valid == share.rows
        for index in range(len(own)):
            whole = received.joined(index) if all_count else None
            yield concatenated(counting(received.pieces(index), share), ACTION) if whole is None else whole

    return on_tensors(data, joined, ACTION)


def _are_objects(data: Any) -> bool:
    """Whether these are no tensors.

    A list with nothing in it (nothing was found in these samples) is one of the objects that other processes may have.
    """
    is_empty = isinstance(data, (list, tuple)) and next(leaves(data), data) is data
    return is_empty or tensor_leaves(data, ACTION) is None


def _is_array(data: Any) -> bool:
    """Whether this is an array of NumPy, of numbers that a tensor can hold."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.ndarray) and data.dtype.char in _NUMBERS


def own_counting(data: Any, share: Share) -> Any:
    """What counts of one process's data: of tensors, of lists and tuples of objects, the rows that do."""
    (rows,), (valid,) = share.rows, share.valid
    if isinstance(data, (list, tuple)) and len(data) == rows and not any(isinstance(leaf, Tensor) for leaf in data):
        return data[:valid]
    return map_leaves(
        lambda leaf: leaf[:valid] if isinstance(leaf, Tensor) and leaf.ndim and leaf.shape[0] == rows else leaf, data
    )


def counting(pieces: list[Tensor], share: Share | None) -> list[Tensor]:
    """What counts of one tensor's pieces, one piece per rank that has something."""
    if share is None:
        return pieces
    pieces = _with_batch_dimension(pieces, share)
    has_rows = all(p.ndim and p.shape[0] == rows for p, rows in zip(pieces, share.rows, strict=True))
    return [
        piece[:valid] if has_rows else piece
        for piece, valid, rows in zip(pieces, share.valid, share.rows, strict=True)
        if valid or not rows
    ] or pieces[:1]


def _with_batch_dimension(pieces: list[Tensor], share: Share) -> list[Tensor]:
    most = max(piece.ndim for piece in pieces)
    return [
        piece.unsqueeze(0) if rows == 1 and piece.ndim == most - 1 else piece
        for piece, rows in zip(pieces, share.rows, strict=True)
    ]


def _counting_objects(objects: list[Any], share: Share | None) -> list[Any]:
    if share is None:
        return objects
    has_rows = all(isinstance(o, (list, tuple)) and len(o) == rows for o, rows in zip(objects, share.rows, strict=True))
    return [
        item[:valid] if has_rows else item
        for item, valid, rows in zip(objects, share.valid, share.rows, strict=True)
        if valid or not rows
    ]


def told_of_samples(own: Any, rows: int) -> str | None:
    """What is wrong with a list of samples, each a tensor or a mapping of tensors; None if this is none.

    Tensors in containers are joined by their place: the first of all processes become one.
    """
    if not isinstance(own, list) or len(own) != rows or rows < 2:
        return None
    tensors = list(leaves(own))
    are_samples = all(isinstance(each, (Tensor, Mapping)) for each in own) and all(
        isinstance(each, Tensor) and each.ndim > 0 for each in tensors
    )
    if not are_samples or all(len(each) == rows for each in tensors):
        return None
    return (
        f"gather_for_metrics() has got a list with an element for each of {rows} samples: elements of the same place "
        "are joined over the processes, so several samples become one. Pass use_gather_object=True for one list of all."
    )


def told_outside(own: Any, joined: Any, processes: int, last: Pass | None) -> str | None:
    """What is wrong with rows that were gathered outside of any pass; None if nothing is seen to be.

    Args:
        own: what this process brought, and `joined` what came of it.
        last: the pass that has ended.
    """
    pairs = [pair for pair in zip(leaves(own), leaves(joined), strict=False) if _are_rows(*pair)]
    if last is not None and last.added and any(len(mine) == last.rows for mine, _ in pairs):
        return (
            f"gather_for_metrics() after the loop has got rows ({last.added}) that were only added so that every "
            "process has some. Call it in the loop, for each batch."
        )
    if pairs and all(torch.equal(mine.repeat(processes, *(1,) * (mine.ndim - 1)), all_) for mine, all_ in pairs):
        return (
            f"gather_for_metrics() in no loop over a prepared loader has got the same rows from all {processes} "
            "processes: each sample counts as often. Pass the loader to prepare(), and loop over what that gives back."
        )
    return None


def _are_rows(own: Any, joined: Any) -> bool:
    """Whether these are rows that tell samples from each other."""
    is_many = isinstance(own, Tensor) and isinstance(joined, Tensor) and own.ndim > 0 and len(own) > 1
    return is_many and bool((own != own[:1]).any())
