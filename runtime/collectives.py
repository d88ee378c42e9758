"""What processes exchange: nested containers of tensors, numbers and objects. With one process nothing happens.

An exchange of tensors packs any number of them, of any dtype and of shapes that differ between the processes, into one
message. Small ones travel with their shapes (one collective); larger ones follow in a second collective of the size
that the shapes ask for. Results carry no gradient, but for those of `reduce`: what comes back to a sum is handed on to
the process's own summand as it is (the mean: divided), as `torch.distributed.all_reduce` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from runtime.errors import CollectiveError, ConfigurationError
from runtime.tree import leaves, map_leaves, with_leaves
from runtime.world import World, current_world

DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128,
)  # fmt: skip
MAX_DIMS = 12
PER_MESSAGE = 16  # tensors; 2 + 16 * (2 + MAX_DIMS) numbers of 8 bytes stay below SMALL
SMALL = 2048  # bytes of a message that carries shapes and, where they fit, the values
ALIGN = 16  # bytes; complex128 is the largest element

# torch 2.13 renamed it
_GATHER = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def exchange(world: World, tensors: list[Tensor]) -> list[list[Tensor]]:
    """For every tensor: that tensor of every process, in rank order, on the device it came from.

    Raises:
        CollectiveError: the processes bring different numbers of tensors, or dtypes.
    """
    result: list[list[Tensor]] = []
    for start in range(0, max(len(tensors), 1), PER_MESSAGE):
        result += _exchange_some(world, tensors[start : start + PER_MESSAGE], len(tensors))
    return result


def _exchange_some(world: World, tensors: list[Tensor], total: int) -> list[list[Tensor]]:
    parts = [_bytes_of(tensor, world.device) for tensor in tensors]
    header = _header(tensors, total, sum(part.numel() for part in parts))
    is_small = header.numel() + sum(part.numel() for part in parts) <= SMALL
    message = torch.zeros(SMALL, dtype=torch.uint8, device=world.device)
    _fill(message, [header, *parts] if is_small else [header])
    first = _all_gather(world, message)
    heads = [_read_header(row) for row in first.cpu()]
    _check_heads(heads)
    sizes = [head.payload_bytes for head in heads]
    if all(head.numel + size <= SMALL for head, size in zip(heads, sizes, strict=True)):
        starts, rows = [head.numel for head in heads], first
    else:
        message = torch.zeros(max(sizes), dtype=torch.uint8, device=world.device)
        _fill(message, parts)
        starts, rows = [0] * world.size, _all_gather(world, message)
    pieces = [_unpacked(row, start, head) for row, start, head in zip(rows, starts, heads, strict=True)]
    return [[own[i].to(tensor.device) for own in pieces] for i, tensor in enumerate(tensors)]


class _Head:
    """The shapes that one process announced."""

    __slots__ = ("dtypes", "numel", "payload_bytes", "shapes", "total")

    def __init__(self, numbers: list[int]) -> None:
        self.total, self.payload_bytes, count = numbers[:3]
        self.dtypes: list[int] = []
        self.shapes: list[tuple[int, ...]] = []
        at = 3
        for _ in range(count):
            dims = numbers[at + 1]
            self.dtypes.append(numbers[at])
            self.shapes.append(tuple(numbers[at + 2 : at + 2 + dims]))
            at += 2 + dims
        self.numel = _aligned(8 * at)


def _aligned(count: int) -> int:
    return -(-count // ALIGN) * ALIGN


def _bytes_of(tensor: Tensor, device: torch.device) -> Tensor:
    if tensor.dtype not in DTYPES or tensor.layout is not torch.strided or tensor.ndim > MAX_DIMS:
        raise CollectiveError(
            f"a tensor of dtype {tensor.dtype}, layout {tensor.layout} and {tensor.ndim} dimensions cannot be "
            f"exchanged. Make it dense, of a plain dtype, and of at most {MAX_DIMS} dimensions."
        )
    flat = tensor.detach().resolve_conj().resolve_neg().to(device).contiguous().reshape(-1).view(torch.uint8)
    padding = _aligned(flat.numel()) - flat.numel()
    return flat if padding == 0 else torch.cat([flat, flat.new_zeros(padding)])


def _header(tensors: list[Tensor], total: int, payload_bytes: int) -> Tensor:
    numbers = [total, payload_bytes, len(tensors)]
    for tensor in tensors:
        numbers += [DTYPES.index(tensor.dtype), tensor.ndim, *tensor.shape]
    numbers += [0] * (_aligned(8 * len(numbers)) // 8 - len(numbers))
    return torch.tensor(numbers, dtype=torch.int64).view(torch.uint8)


def _read_header(row: Tensor) -> _Head:
    return _Head(row.view(torch.int64).tolist())


def _check_heads(heads: list[_Head]) -> None:
    _check_same("numbers of tensors", [head.total for head in heads])
    _check_same("dtypes", [[DTYPES[code] for code in head.dtypes] for head in heads])


def _check_same(name: str, seen: list[Any]) -> None:
    if any(value != seen[0] for value in seen):
        told = ", ".join(f"rank {rank}: {value}" for rank, value in enumerate(seen))
        raise CollectiveError(f"the processes gather different {name}: {told}. Gather the same on every process.")


def _fill(message: Tensor, parts: list[Tensor]) -> None:
    at = 0
    for part in parts:
        message[at : at + part.numel()].copy_(part)
        at += part.numel()


def _all_gather(world: World, message: Tensor) -> Tensor:
    out = torch.empty((world.size * message.numel(),), dtype=torch.uint8, device=message.device)
    _GATHER(out, message)
    return out.view(world.size, message.numel())


def _unpacked(row: Tensor, start: int, head: _Head) -> list[Tensor]:
    result = []
    for code, shape in zip(head.dtypes, head.shapes, strict=True):
        dtype = DTYPES[code]
        count = torch.Size(shape).numel() * dtype.itemsize
        result.append(row[start : start + count].view(dtype).reshape(shape))
        start += _aligned(count)
    return result


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


def shapes_text(pieces: list[Tensor]) -> str:
    """The shape on each rank, for messages."""
    return ", ".join(f"rank {rank}: {tuple(piece.shape)}" for rank, piece in enumerate(pieces))


def concatenated(pieces: list[Tensor], action: str) -> Tensor:
    """The pieces joined along the first dimension; tensors without dimensions become one element each.

    Raises:
        CollectiveError: their other dimensions differ.
    """
    rows = [piece.reshape(1) if piece.ndim == 0 else piece for piece in pieces]
    if any(row.shape[1:] != rows[0].shape[1:] for row in rows):
        raise CollectiveError(
            f"{action} cannot join shapes that differ after the first dimension: {shapes_text(pieces)}. "
            "Pad them first: accelerator.pad_across_processes(tensor, dim=1)."
        )
    return torch.cat(rows)


def gather(world: World, data: Any) -> Any:
    """`data` with every tensor joined over all processes in rank order; the input itself on one process."""
    if world.size == 1:
        return data
    return on_tensors(data, lambda own: [concatenated(p, "gather") for p in exchange(world, own)], "gather")


def all_objects(world: World, item: Any) -> list[Any]:
    """The object of every process, in rank order (pickled)."""
    received: list[Any] = [None] * world.size
    dist.all_gather_object(received, item)
    return received


def flattened(objects: list[Any]) -> list[Any]:
    """One level of lists, tuples and sets taken off; other objects stay whole."""
    result: list[Any] = []
    for item in objects:
        result.extend(item if isinstance(item, (list, tuple, set, frozenset)) else [item])
    return result


def gather_object(object: Any) -> Any:  # noqa: A002  the name in Accelerate
    """The objects of all processes in one list (lists are joined); the input itself on one process."""
    world = current_world()
    if world.size == 1:
        return object
    return flattened(all_objects(world, object))


def broadcast_object_list(object_list: list[Any], from_process: int = 0) -> list[Any]:
    """One process' objects (pickled) in the list of every process: the list is changed, and given back."""
    world = current_world()
    if world.size > 1:
        dist.broadcast_object_list(object_list, src=from_process, device=world.device)
    return object_list


def reduce(world: World, data: Any, reduction: str = "sum", scale: float = 1.0) -> Any:
    """`data` summed or averaged over the processes; new tensors, also on one process.

    Python numbers keep their type: an int stays exact (int64), a float is reduced in float64. The mean of whole
    numbers is a floating-point number. Numbers and arrays of NumPy come back as such.

    Raises:
        ConfigurationError: `reduction` is neither "sum" nor "mean".
    """
    if reduction not in ("sum", "mean"):
        raise ConfigurationError(f"reduction={reduction!r} is not known. Known: sum, mean.")
    own = list(leaves(data))
    tensors = [_as_summand(leaf) for leaf in own]
    if world.size > 1:
        _all_reduce(world, [tensor for tensor in tensors if tensor is not None])
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
    if reduction == "mean":
        tensor = tensor / size
    if scale != 1.0:
        tensor = tensor * scale
    if isinstance(leaf, Tensor):
        weight = scale / size if reduction == "mean" else scale
        return _Joined.apply(leaf, tensor, weight) if leaf.requires_grad else tensor  # type: ignore[no-untyped-call]
    return tensor.numpy()[()] if _is_numpy(leaf) and not isinstance(leaf, float) else tensor.item()


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


def _all_reduce(world: World, tensors: list[Tensor]) -> None:
    """Sum in place, one collective per dtype."""
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        group = [tensor for tensor in tensors if tensor.dtype is dtype]
        flat = torch.cat([tensor.reshape(-1).to(world.device) for tensor in group])
        dist.all_reduce(torch.view_as_real(flat) if dtype.is_complex else flat)
        at = 0
        for tensor in group:
            tensor.copy_(flat[at : at + tensor.numel()].view(tensor.shape))
            at += tensor.numel()


def pad_across_processes(world: World, data: Any, dim: int = 0, pad_index: float = 0, pad_first: bool = False) -> Any:
    """Tensors filled up along `dim` with `pad_index` to the largest size of any process; the input on one process."""
    if world.size == 1:
        return data

    def padded(tensors: list[Tensor]) -> Iterator[Tensor]:
        sizes = [torch.tensor(t.shape[dim] if -t.ndim <= dim < t.ndim else -1) for t in tensors]
        for tensor, everywhere in zip(tensors, exchange(world, sizes), strict=True):
            yield _padded(tensor, max(int(size) for size in everywhere), dim, pad_index, pad_first)

    return on_tensors(data, padded, "pad_across_processes")


def _padded(tensor: Tensor, size: int, dim: int, pad_index: float, pad_first: bool) -> Tensor:
    if not -tensor.ndim <= dim < tensor.ndim or tensor.shape[dim] == size:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = size - tensor.shape[dim]
    filling = tensor.new_full(shape, pad_index)
    return torch.cat([filling, tensor] if pad_first else [tensor, filling], dim=dim)


def broadcast_tensors(world: World, tensors: list[Tensor]) -> None:
    """Rank 0's values into `tensors` on every process, in place, one collective; shapes must be the same."""
    if world.size == 1 or not tensors:
        return
    if len(tensors) == 1 and tensors[0].is_contiguous() and tensors[0].device == world.device:
        dist.broadcast(tensors[0], src=0)
        return
    parts = [_bytes_of(tensor, world.device) for tensor in tensors]
    message = torch.cat(parts)
    dist.broadcast(message, src=0)
    at = 0
    for tensor, part in zip(tensors, parts, strict=True):
        count = tensor.numel() * tensor.dtype.itemsize
        if world.rank != 0:
            tensor.copy_(message[at : at + count].view(tensor.dtype).reshape(tensor.shape))
        at += part.numel()


def broadcast_object(world: World, item: Any) -> Any:
    """Rank 0's object on every process (pickled)."""
    if world.size == 1:
        return item
    box = [item]
    dist.broadcast_object_list(box, src=0, device=world.device)
    return box[0]
