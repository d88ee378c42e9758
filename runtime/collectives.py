"""What processes exchange: nested containers of tensors, numbers and objects. With one process nothing happens.

Any number of tensors, of any dtype and of shapes that differ between the processes, travel in one message
(`runtime.messages`). Results carry no gradient, but for those of `reduce`: what comes back to a sum is handed on to the
process's own summand as it is (the mean: divided), as `torch.distributed.all_reduce` has it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from runtime.devices import in_host_memory
from runtime.errors import CollectiveError, ConfigurationError
from runtime.messages import agreed, aligned_bytes_of, announce, exchange, is_small, run
from runtime.tree import leaves, map_leaves, with_leaves
from runtime.watch import is_on
from runtime.world import World


def tensor_leaves(data: Any, action: str) -> list[Tensor] | None:
    """The tensors in `data`; None if it holds objects of other types instead (`None` is a place without a value).

    Raises:
        CollectiveError: it holds both; half of them would come back in another form.
    """
    found = [leaf for leaf in leaves(data) if leaf is not None]
    tensors = [leaf for leaf in found if isinstance(leaf, Tensor)]
    if found and not tensors:
        return None
    if len(tensors) < len(found):
        other = next(leaf for leaf in found if not isinstance(leaf, Tensor))
        raise CollectiveError(
            f"{action} got tensors and a {type(other).__name__} in one container. "
            "Make two calls, one for the tensors and one for the rest."
        )
    return tensors


def on_tensors(data: Any, function: Callable[[list[Tensor]], Iterable[Tensor]], action: str) -> Any:
    """`data` with its tensors replaced by what `function` makes of all of them.

    Raises:
        TypeError: `data` holds something else than tensors.
    """
    tensors = tensor_leaves(data, action)
    if tensors is None:
        kinds = sorted({type(leaf).__name__ for leaf in leaves(data)})
        raise TypeError(f"{action} takes tensors, and got: {', '.join(kinds)}. Use gather_object for other objects.")
    results = iter(function(tensors))
    return map_leaves(lambda leaf: None if leaf is None else next(results), data)


def shapes_text(shapes: Iterable[tuple[int, ...]]) -> str:
    """The shape on each rank, for messages."""
    return ", ".join(f"rank {rank}: {shape}" for rank, shape in enumerate(shapes))


def concatenated(pieces: list[Tensor], action: str) -> Tensor:
    """The pieces joined along the first dimension; tensors without dimensions become one element each.

    Raises:
        CollectiveError: their other dimensions differ.
    """
    rows = [piece.reshape(1) if piece.ndim == 0 else piece for piece in pieces]
    if any(row.shape[1:] != rows[0].shape[1:] for row in rows):
        seen = shapes_text(tuple(piece.shape) for piece in pieces)
        raise CollectiveError(
            f"{action} cannot join shapes that differ after the first dimension: {seen}. "
            "Pad them first: accelerator.pad_across_processes(tensor, dim=1)."
        )
    return torch.cat(rows)


def gather(world: World, data: Any) -> Any:
    """`data` with every tensor joined over all processes in rank order; the input itself on one process."""
    if world.size == 1:
        return data

    def joined(own: list[Tensor]) -> Iterator[Tensor]:
        received = exchange(world, own, "gather")
        for index in range(len(own)):
            whole = received.joined(index)
            yield concatenated(received.pieces(index), "gather") if whole is None else whole

    return on_tensors(data, joined, "gather")


def barrier(world: World) -> None:
    """Return when every process has come here."""
    if world.size > 1 and dist.is_initialized():
        exchange(world, [], "wait_for_everyone")


def all_flags(world: World, flag: bool, call: str) -> list[bool]:
    """What every process says, in rank order."""
    if world.size == 1:
        return [flag]
    return [bool(piece) for piece in exchange(world, [torch.tensor(flag)], call).pieces(0)]


def all_objects(world: World, item: Any, call: str = "gather_object") -> list[Any]:
    """The object of every process, in rank order (pickled)."""
    received = exchange(world, [_pickled(item)], call)
    return [_unpickled(piece) for piece in received.pieces(0)]


def _pickled(item: Any) -> Tensor:
    return torch.frombuffer(bytearray(pickle.dumps(item)), dtype=torch.uint8)


def _unpickled(data: Tensor) -> Any:
    return pickle.loads(data.cpu().numpy().tobytes())  # noqa: S301  a process of this run wrote it


def flattened(objects: list[Any]) -> list[Any]:
    """One level of lists, tuples and sets taken off; other objects stay whole."""
    result: list[Any] = []
    for item in objects:
        result.extend(item if isinstance(item, (list, tuple, set, frozenset)) else [item])
    return result


def gather_object(world: World, item: Any) -> Any:
    """The objects of all processes in one list (lists are joined); the input itself on one process."""
    return item if world.size == 1 else flattened(all_objects(world, item))


def broadcast_object_list(world: World, object_list: list[Any], from_process: int = 0) -> list[Any]:
    """One process' objects (pickled) in the list of every process: the list is changed, and given back."""
    if world.size > 1:
        object_list[:] = _told(world, object_list, from_process, "broadcast_object_list")
    return object_list


def broadcast_object(world: World, item: Any, call: str = "") -> Any:
    """Rank 0's object on every process (pickled)."""
    return item if world.size == 1 else _told(world, item, 0, call)


def _told(world: World, item: Any, source: int, call: str) -> Any:
    refuse_rank(world, source)
    own = _pickled(item) if world.rank == source else torch.empty(0, dtype=torch.uint8)
    received = exchange(world, [own], call, detail=source)
    return _unpickled(received.of(source, 0))


def refuse_rank(world: World, rank: int) -> None:
    """Raise for a process that is not there."""
    if not 0 <= rank < world.size:
        raise ConfigurationError(
            f"from_process={rank} is not one of the {world.size} processes, 0 to {world.size - 1}."
        )


def broadcast(world: World, data: Any, from_process: int = 0, *, call: str = "broadcast") -> Any:
    """One process' values in the tensors of `data` on every process, in place; `data` is given back.

    Every process says first what it calls: what is summed or sent in another call is never taken for this.

    Raises:
        CollectiveError: the tensors differ in number, dtype or shape.
    """
    if world.size == 1:
        return data
    refuse_rank(world, from_process)

    def told(own: list[Tensor]) -> list[Tensor]:
        if is_small(own):
            received = agreed(world, own, call, detail=from_process, source=from_process)
            for index, tensor in enumerate(own):
                tensor.detach().copy_(received.of(from_process, index))
        else:
            announce(world, own, call, detail=from_process)
            broadcast_tensors(world, [tensor.detach() for tensor in own], from_process, call)
        return own

    return on_tensors(data, told, "broadcast")


#: What neither gloo nor NCCL sends as what it is.
_AS_BYTES = {
    torch.int16, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2,
}  # fmt: skip
_REDUCTIONS = ("sum", "mean", "max", "none")


def reduce(
    world: World,
    data: Any,
    reduction: str = "sum",
    scale: float = 1.0,
    *,
    call: str = "reduce",
    is_checked: bool | None = None,
) -> Any:
    """`data` summed, averaged, or as its largest values over the processes; new tensors, also on one process.

    Python numbers keep their type: an int stays exact (int64), a float is reduced in float64. The mean of whole
    numbers over several processes is a floating-point number: of tensors in PyTorch's default dtype, of all others in
    float64. Numbers and arrays of NumPy come back as such. With "none" nothing is exchanged. What is not scaled is on
    one process what it was, with its type.

    Raises:
        ConfigurationError: `reduction` is none of "sum", "mean", "max" and "none".
        CollectiveError: the processes bring different numbers of tensors, dtypes or shapes (on gloo, or in debug mode).
    """
    if reduction not in _REDUCTIONS:
        raise ConfigurationError(f"reduction={reduction!r} is not known. Known: {', '.join(_REDUCTIONS)}.")
    own = list(leaves(data))
    tensors = [_as_summand(leaf) for leaf in own]
    if world.size > 1 and reduction != "none":
        _all_reduce(world, [t for t in tensors if t is not None], reduction, call, is_checked)
    results = [_finished(t, leaf, reduction, world.size, scale) for t, leaf in zip(tensors, own, strict=True)]
    return with_leaves(data, iter(results))


def _as_summand(leaf: Any) -> Tensor | None:
    if leaf is None:
        return None
    if isinstance(leaf, Tensor):
        return leaf.detach().to(torch.int64) if leaf.dtype is torch.bool else leaf.detach().clone()
    if isinstance(leaf, (int, float)):
        return torch.tensor(leaf, dtype=torch.float64 if isinstance(leaf, float) else torch.int64)
    if _is_numpy(leaf):
        tensor = torch.as_tensor(leaf)
        return tensor.to(torch.int64) if tensor.dtype is torch.bool else tensor.clone()
    raise TypeError(f"reduce takes tensors and numbers, and got a {type(leaf).__name__}.")


def _is_numpy(leaf: Any) -> bool:
    return type(leaf).__module__ == "numpy" and hasattr(leaf, "dtype")


def _finished(tensor: Tensor | None, leaf: Any, reduction: str, size: int, scale: float) -> Any:
    if tensor is None:
        return None
    if size == 1 and scale == 1.0:
        if not isinstance(leaf, Tensor):
            return leaf.copy() if _is_numpy(leaf) else leaf
        tensor = tensor.to(leaf.dtype)
    is_mean = reduction == "mean" and size > 1
    is_changed = is_mean or scale != 1.0
    if is_changed and not isinstance(leaf, Tensor) and not tensor.is_floating_point() and not tensor.is_complex():
        tensor = tensor.double()  # PyTorch divides whole numbers in float32, which knows no more than 2**24 of them
    if is_mean:
        tensor = tensor / size
    if scale != 1.0:
        tensor = tensor * scale
    if isinstance(leaf, Tensor):
        weight = scale / size if reduction == "mean" else scale
        joins = leaf.requires_grad and reduction != "max"  # the largest has no gradient to hand on
        return _Joined.apply(leaf, tensor, weight) if joins else tensor  # type: ignore[no-untyped-call]
    return tensor.numpy()[()] if _is_numpy(leaf) else tensor.item()


class _Joined(torch.autograd.Function):
    """What the processes have joined, in the place of what one of them put in."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, joined: Tensor, weight: float) -> Tensor:
        del own
        ctx.weight = weight
        ctx.mark_dirty(joined)  # no view: the program may go on in place
        return joined

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0] if ctx.weight == 1.0 else gradients[0] * ctx.weight, None, None


def _all_reduce(world: World, tensors: list[Tensor], reduction: str, call: str, is_checked: bool | None) -> None:
    """In place: what is small in the message that also says what it is, the rest in one collective per dtype."""
    detail = _REDUCTIONS.index(reduction)
    if is_checked is None:
        is_checked = in_host_memory(world.device) or is_on()  # elsewhere it would make the device wait
    if is_checked and is_small(tensors):
        received = agreed(world, tensors, call, detail=detail)
        for index, tensor in enumerate(tensors):
            everywhere = received.stacked(index)  # in rank order, so the result is the same on all
            tensor.copy_(everywhere.amax(0) if reduction == "max" else everywhere.sum(0, dtype=tensor.dtype))
        return
    if is_checked:
        announce(world, tensors, call, detail)
    kind = dist.ReduceOp.MAX if reduction == "max" else dist.ReduceOp.SUM

    def joined(flat: Tensor) -> None:
        if flat.is_floating_point() and reduction == "max":
            lost = flat.isnan().byte()  # gloo loses these, depending on who has them
            run(dist.all_reduce, call, flat, op=kind)
            run(dist.all_reduce, call, lost, op=kind)
            flat[lost.bool()] = torch.nan
        elif flat.dtype is torch.int16:  # neither gloo nor NCCL has sums of these
            run(dist.all_reduce, call, wide := flat.int(), op=kind)
            flat.copy_(wide)
        else:
            run(dist.all_reduce, call, torch.view_as_real(flat) if flat.is_complex() else flat, op=kind)

    _flattened(world, tensors, joined)


def _flattened(world: World, tensors: list[Tensor], function: Callable[[Tensor], None]) -> None:
    """Let `function` change the tensors of each dtype, joined in one row, in place."""
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        group = [tensor for tensor in tensors if tensor.dtype is dtype]
        place = world.place_of(group)
        flat = torch.cat([tensor.reshape(-1).to(place) for tensor in group])
        function(flat)
        at = 0
        for tensor in group:
            tensor.copy_(flat[at : at + tensor.numel()].view(tensor.shape))
            at += tensor.numel()


def pad_across_processes(world: World, data: Any, dim: int = 0, pad_index: float = 0, pad_first: bool = False) -> Any:
    """Tensors filled up along `dim` with `pad_index` to the largest size of any process; the input on one process."""
    if world.size == 1:
        return data

    def padded(tensors: list[Tensor]) -> Iterator[Tensor]:
        received = exchange(world, tensors, "pad_across_processes", source=-1)  # shapes are enough
        for index, tensor in enumerate(tensors):
            shapes = received.shapes(index)
            if len({len(shape) for shape in shapes}) > 1:
                raise CollectiveError(
                    f"pad_across_processes got tensors of different numbers of dimensions: {shapes_text(shapes)}. "
                    "Give them the same on every process.",
                    told_by=0,
                )
            has_dim = -tensor.ndim <= dim < tensor.ndim
            size = max(shape[dim] for shape in shapes) if has_dim else 0
            yield _padded(tensor, size, dim, pad_index, pad_first) if has_dim else tensor

    return on_tensors(data, padded, "pad_across_processes")


def _padded(tensor: Tensor, size: int, dim: int, pad_index: float, pad_first: bool) -> Tensor:
    if tensor.shape[dim] == size:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = size - tensor.shape[dim]
    filling = tensor.new_full(shape, pad_index)
    return torch.cat([filling, tensor] if pad_first else [tensor, filling], dim=dim)


def broadcast_tensors(world: World, tensors: list[Tensor], source: int = 0, call: str = "") -> None:
    """One rank's values into `tensors` on every process, in place, one collective; shapes must be the same."""
    if world.size == 1 or not tensors:
        return
    place = world.place_of(tensors)
    if len(tensors) == 1 and tensors[0].is_contiguous() and tensors[0].device == place:
        own = tensors[0].detach()
        run(dist.broadcast, call, own.view(-1).view(torch.uint8) if own.dtype in _AS_BYTES else own, src=source)
        return
    if place != world.device:  # one message of bytes would make the device see one dtype as another
        _flattened(world, tensors, lambda flat: run(dist.broadcast, call, flat, src=source))
        return
    parts = [aligned_bytes_of(tensor, place) for tensor in tensors]
    message = torch.cat(parts)
    run(dist.broadcast, call, message, src=source)
    at = 0
    for tensor, part in zip(tensors, parts, strict=True):
        count = tensor.numel() * tensor.dtype.itemsize
        if world.rank != source:
            tensor.copy_(message[at : at + count].view(tensor.dtype).reshape(tensor.shape))
        at += part.numel()
