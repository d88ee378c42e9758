"""How tensors travel: all of one call, of any number, dtype and shape, in one message that says what it is.

Every exchange begins with a message of one size, so calls of different kinds on different processes meet, and are named
with the line of each, instead of waiting for each other:

    first    what is called · how many tensors · how many bytes   then, as far as they fit, dtypes and shapes, values
    second   what did not fit, only where it did not

Large tensors of one shape travel without being copied together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from runtime.devices import in_host_memory
from runtime.errors import CollectiveError, WorldError
from runtime.watch import GRADIENTS, place_of_caller, wait, way_out
from runtime.world import World

DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64,
    torch.float8_e4m3fn, torch.float8_e5m2,
)  # fmt: skip
_CODES = {dtype: code for code, dtype in enumerate(DTYPES)}
MAX_DIMS = 12
SMALL = 2048  # bytes of the first message
ALIGN = 16  # bytes; complex128 is the largest element
_HEAD = struct.Struct("<5q8x")  # five numbers, aligned
_PREFIX = _HEAD.size

# torch 2.13 renamed it
_GATHER: Callable[..., Any] = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor

_SAME = "Bring the same on every process."

#: What is not called by the script itself, in words that follow "waits in".
BUFFERS = "the exchange of buffers in a forward"
BEGINNING = "the start of a pass over a loader"
BATCH = "the exchange of a loader's batches"

#: A call of its own, so that the error of processes of which some bring tensors and some objects says so.
OBJECTS = "gather_for_metrics of objects"
#: What may be called; the number in the message is the place in this list.
CALLS = (
    "gather", "gather_for_metrics", OBJECTS, "reduce", "pad_across_processes", "wait_for_everyone", "gather_object",
    "broadcast", "broadcast_object_list", "check_trigger", "synchronize_rng_states", "save_state", "load_state",
    "check_termination", "get_state_dict", GRADIENTS, BUFFERS, BEGINNING, BATCH, "an exchange of the runtime",
)  # fmt: skip
_NUMBERS = {name: number for number, name in enumerate(CALLS)}
_OTHER = len(CALLS) - 1


@dataclass(frozen=True, slots=True)
class _Head:
    """What one process announces: `detail` is a number that must be the same everywhere (a source, a kind of sum)."""

    call: int
    detail: int
    count: int
    head_bytes: int
    payload_bytes: int

    def packed(self) -> bytes:
        """As it travels."""
        return _HEAD.pack(self.call, self.detail, self.count, self.head_bytes, self.payload_bytes)

    @property
    def fits(self) -> bool:
        return _PREFIX + self.head_bytes + self.payload_bytes <= SMALL

    @property
    def shapes_fit(self) -> bool:
        return _PREFIX + self.head_bytes <= SMALL


_Form = tuple[torch.dtype, tuple[int, ...]]  # of one tensor


class Received:
    """What came of every process: its tensors, in rank order, on the device each came from."""

    def __init__(self, forms: list[list[_Form]], rows: Tensor, starts: list[int], devices: list[torch.device]) -> None:
        self._forms = forms  # of rank, of tensor
        self._rows = rows  # of rank, bytes
        self._starts = starts  # of rank: where its values begin
        self._devices = devices
        self.is_even = all(own is forms[0] or own == forms[0] for own in forms)

    def shapes(self, index: int) -> list[tuple[int, ...]]:
        """The shape of one tensor on every rank."""
        return [own[index][1] for own in self._forms]

    def pieces(self, index: int) -> list[Tensor]:
        """One tensor of every rank."""
        return [self.of(rank, index) for rank in range(len(self._forms))]

    def of(self, rank: int, index: int) -> Tensor:
        """One tensor of one rank."""
        dtype, shape = self._forms[rank][index]
        start, stop = self._span(rank, index)
        return self._rows[rank, start:stop].view(dtype).reshape(shape).to(self._devices[index])

    def stacked(self, index: int) -> Tensor:
        """One tensor of every rank, along a new first dimension. Only if `is_even`."""
        dtype, shape = self._forms[0][index]
        start, stop = self._span(0, index)
        values = self._rows[:, start:stop].view(dtype).reshape(len(self._forms), *shape)
        return values.to(self._devices[index])

    def joined(self, index: int) -> Tensor | None:
        """One tensor of every rank, joined along the first dimension; None where the shapes differ."""
        if not self.is_even:
            return None
        stacked = self.stacked(index)
        joined = stacked if stacked.ndim == 1 else stacked.flatten(0, 1)
        return joined.contiguous()  # one row of each is still a view of what came, and `labels.view(-1)` takes none

    def _span(self, rank: int, index: int) -> tuple[int, int]:
        start = self._starts[rank] + sum(aligned(_nbytes(form)) for form in self._forms[rank][:index])
        return start, start + _nbytes(self._forms[rank][index])


def _nbytes(form: _Form) -> int:
    return prod(form[1]) * form[0].itemsize


def exchange(
    world: World, tensors: list[Tensor], call: str = "", *, detail: int = 0, source: int | None = None
) -> Received:
    """The tensors of every process.

    Args:
        call: what the script called, for messages.
        detail: a number that must be the same on every process.
        source: the only process whose values are sent; of the others, only shapes and dtypes.

    Raises:
        CollectiveError: the processes call different things, or bring different numbers of tensors, or dtypes.
    """
    sends = source is None or source == world.rank
    parts = [bytes_of(tensor, world.device) for tensor in tensors] if sends else []
    forms = [(tensor.dtype, tuple(tensor.shape)) for tensor in tensors]
    packed = _packed(forms)
    head = _Head(_NUMBERS.get(call, _OTHER), detail, len(forms), len(packed), sum(aligned(p.numel()) for p in parts))
    said = head.packed() + (packed if head.shapes_fit else b"")
    first = _gathered(world, _first(world, head, said, parts), call)
    own = _Own([tensor.device for tensor in tensors], packed, parts)
    told = _table_of(first)
    if all(told[at : at + len(said)] == said for at in range(0, len(told), SMALL)):
        heads, everyone = [head] * world.size, [forms] * world.size if head.shapes_fit else None
    else:
        heads = [_Head(*_HEAD.unpack_from(told, at)) for at in range(0, len(told), SMALL)]
        _check_calls(world, heads)
        everyone = None
        if all(other.shapes_fit for other in heads):
            everyone = [_unpacked(told, SMALL * rank + _PREFIX, other.count) for rank, other in enumerate(heads)]
            _check_dtypes(world, everyone)
    if everyone is not None and all(other.fits for other in heads):
        return Received(everyone, first, [_PREFIX + other.head_bytes for other in heads], own.devices)
    return _rest(world, own, heads, everyone, call, source)


def announce(world: World, tensors: list[Tensor], call: str, detail: int = 0) -> None:
    """Check that every process comes with the same tensors, without their values.

    Raises:
        CollectiveError: they differ in number, dtype or shape.
    """
    _check_forms(exchange(world, tensors, call, detail=detail, source=-1), call, world, len(tensors))


def agreed(world: World, tensors: list[Tensor], call: str, *, detail: int = 0, source: int | None = None) -> Received:
    """As `exchange`, of tensors that must have one shape on all processes.

    Raises:
        CollectiveError: they differ in number, dtype or shape.
    """
    received = exchange(world, tensors, call, detail=detail, source=source)
    _check_forms(received, call, world, len(tensors))
    return received


def is_small(tensors: list[Tensor]) -> bool:
    """Whether tensors and their shapes go into the first message."""
    head_bytes = aligned(8 * sum(2 + tensor.ndim for tensor in tensors))
    return _PREFIX + head_bytes + sum(aligned(t.numel() * t.dtype.itemsize) for t in tensors) <= SMALL


def bytes_of(tensor: Tensor, device: torch.device) -> Tensor:
    """The values of a tensor as a row of bytes on `device`.

    Raises:
        CollectiveError: it is sparse, quantized, or of more than 12 dimensions.
    """
    if tensor.dtype not in _CODES or tensor.layout is not torch.strided or tensor.ndim > MAX_DIMS:
        raise CollectiveError(
            f"a tensor of dtype {tensor.dtype}, layout {tensor.layout} and {tensor.ndim} dimensions cannot be "
            f"exchanged. Make it dense, of a plain dtype, and of at most {MAX_DIMS} dimensions."
        )
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    dense = tensor.to(device).contiguous()
    return dense.as_strided((dense.numel(),), (1,)).view(torch.uint8)  # a single element may keep another stride


def aligned_bytes_of(tensor: Tensor, device: torch.device) -> Tensor:
    """As `bytes_of`, with zeros up to where a value of any dtype may begin."""
    flat = bytes_of(tensor, device)
    more = aligned(flat.numel()) - flat.numel()
    return flat if more == 0 else torch.cat([flat, flat.new_zeros(more)])


def aligned(count: int) -> int:
    """So many bytes, and those up to where a value of any dtype may begin."""
    return -(-count // ALIGN) * ALIGN


def _packed(forms: list[_Form]) -> bytes:
    numbers: list[int] = []
    for dtype, shape in forms:
        numbers += (_CODES.get(dtype, -1), len(shape), *shape)
    return struct.pack(f"<{len(numbers) + len(numbers) % 2}q", *numbers, *[0] * (len(numbers) % 2))


def _unpacked(data: memoryview | bytes, at: int, count: int) -> list[_Form]:
    forms = []
    for _ in range(count):
        code, dims = struct.unpack_from("<2q", data, at)
        forms.append((DTYPES[code], struct.unpack_from(f"<{dims}q", data, at + 16)))
        at += 16 + 8 * dims
    return forms


def _table_of(rows: Tensor) -> memoryview:
    data: memoryview = rows.cpu().numpy().reshape(-1).data
    return data


def _first(world: World, head: _Head, said: bytes, parts: list[Tensor]) -> Tensor:
    buffer = bytearray(SMALL)
    buffer[: len(said)] = said
    message = torch.frombuffer(buffer, dtype=torch.uint8).to(world.device)
    if head.fits:
        _fill(message, len(said), parts)
    return message


def _fill(message: Tensor, at: int, parts: list[Tensor]) -> None:
    for part in parts:
        message[at : at + part.numel()] = part
        at += aligned(part.numel())


@dataclass(frozen=True, slots=True)
class _Own:
    """What this process brings: where its tensors are, their forms, their values."""

    devices: list[torch.device]
    packed: bytes
    parts: list[Tensor]


def _rest(
    world: World, own: _Own, heads: list[_Head], forms: list[list[_Form]] | None, call: str, source: int | None
) -> Received:
    """The second message: what did not fit."""
    sizes = [head.payload_bytes + (0 if forms else head.head_bytes) for head in heads]
    if forms and len(own.parts) == 1 and all(other == forms[0] for other in forms) and len(set(sizes)) == 1:
        everything = torch.empty(world.size * own.parts[0].numel(), dtype=torch.uint8, device=world.device)
        run(_GATHER, call, everything, own.parts[0])  # nothing is copied together
        return Received(forms, everything.view(world.size, -1), [0] * world.size, own.devices)
    message = torch.empty(max(sizes), dtype=torch.uint8, device=world.device)
    packed = b"" if forms else own.packed
    if packed:
        message[: len(packed)] = torch.frombuffer(bytearray(packed), dtype=torch.uint8).to(world.device)
    _fill(message, len(packed), own.parts)
    if forms and source is not None:
        run(dist.broadcast, call, message, src=source)
        return Received(forms, message.expand(world.size, -1), [0] * world.size, own.devices)
    second = _gathered(world, message, call)
    if forms:
        return Received(forms, second, [0] * world.size, own.devices)
    told = _table_of(second)
    forms = [_unpacked(told, rank * second.shape[1], head.count) for rank, head in enumerate(heads)]
    _check_dtypes(world, forms)
    return Received(forms, second, [head.head_bytes for head in heads], own.devices)


def _gathered(world: World, message: Tensor, call: str) -> Tensor:
    out = torch.empty((world.size * message.numel(),), dtype=torch.uint8, device=message.device)
    run(_GATHER, call, out, message)
    return out.view(world.size, message.numel())


def run(collective: Callable[..., Any], call: str, *arguments: Any, **options: Any) -> None:
    """A collective of PyTorch (whose first argument is a tensor), watched under the name of what the script called.

    Raises:
        WorldError: the process group has been left.
    """
    if not dist.is_initialized():
        raise WorldError(
            f"{call or CALLS[_OTHER]}: this process has left the others, in end_training() or destroy_process_group(). "
            "Do before that what needs all of them: gradients, metrics and checkpoints; or make a new Accelerator."
        )
    on_host = in_host_memory(arguments[0].device)
    wait(lambda: collective(*arguments, **options, async_op=True), call or CALLS[_OTHER], on_host=on_host)


def _check_calls(world: World, heads: list[_Head]) -> None:
    first = heads[0]
    if all(head.call == first.call and head.detail == first.detail and head.count == first.count for head in heads):
        return
    if any(head.call != first.call for head in heads):
        _disagree(world, "are in different calls", calls := [CALLS[head.call] for head in heads], way_out(calls))
    name = CALLS[first.call]
    if any(head.count != first.count for head in heads):
        counts = [f"{head.count} tensors" for head in heads]
        _disagree(world, f"bring different numbers of tensors to {name}", counts, _SAME)
    details = [str(head.detail) for head in heads]
    _disagree(world, f"call {name} with different arguments", details, _SAME)


def _check_dtypes(world: World, told: list[list[_Form]]) -> None:
    dtypes = [[dtype for dtype, _ in own] for own in told]
    if any(own != dtypes[0] for own in dtypes):
        _disagree(world, "bring different dtypes", [", ".join(map(str, own)) for own in dtypes], _SAME)


def _check_forms(received: Received, call: str, world: World, count: int) -> None:
    if not received.is_even:
        shapes = [[received.shapes(index)[rank] for index in range(count)] for rank in range(world.size)]
        texts = [", ".join(map(str, own)) for own in shapes]
        _disagree(world, f"bring different shapes to {call}", texts, _SAME)


def _disagree(world: World, what: str, seen: list[str], way_out: str) -> None:
    """Every process comes here in the same exchange, so all can tell each other where they are."""
    places: list[Any] = [None] * world.size
    dist.all_gather_object(places, place_of_caller())
    lines = "".join(f"\n  rank {rank}: {said}    at {places[rank]}" for rank, said in enumerate(seen))
    raise CollectiveError(f"the processes {what}:{lines}\n{way_out}", told_by=0)
