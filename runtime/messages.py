"""How tensors travel: all of one call, of any number, dtype and shape, in one message that says what it is.

Every exchange begins with a message of one size, so calls of different kinds on different processes meet, and are named
with the line of each, instead of waiting for each other:

    first    what is called · how many tensors · how many bytes   then, as far as they fit, dtypes and shapes, values
    second   what did not fit, only where it did not

Large tensors of one shape travel without being copied together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from runtime.errors import CollectiveError
from runtime.watch import place_of_caller, wait
from runtime.world import World

DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128,
)  # fmt: skip
_CODES = {dtype: code for code, dtype in enumerate(DTYPES)}
MAX_DIMS = 12
SMALL = 2048  # bytes of the first message
ALIGN = 16  # bytes; complex128 is the largest element
_PREFIX = 48  # bytes of its five numbers, aligned

# torch 2.13 renamed it
_GATHER: Callable[..., Any] = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor

_SAME = "Bring the same on every process."
_SAME_CALL = (
    "Every process must come to the same calls in the same order: look for one inside of `if is_main_process`, in a "
    "loop that has more steps on some processes, or after a return that only some take."
)

#: What may be called; the number in the message is the place in this list.
CALLS = (
    "gather", "gather_for_metrics", "reduce", "pad_across_processes", "wait_for_everyone", "gather_object", "broadcast",
    "broadcast_object_list", "check_trigger", "synchronize_rng_states", "save_state",
    "load_state", "check_termination", "an exchange of the runtime",
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

    @property
    def fits(self) -> bool:
        return _PREFIX + self.head_bytes + self.payload_bytes <= SMALL

    @property
    def shapes_fit(self) -> bool:
        return _PREFIX + self.head_bytes <= SMALL


@dataclass(frozen=True, slots=True)
class _Form:
    """Dtype and shape of one tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return torch.Size(self.shape).numel() * self.dtype.itemsize


class Received:
    """What came of every process: its tensors, in rank order, on the device each came from."""

    def __init__(self, forms: list[list[_Form]], rows: list[Tensor], devices: list[torch.device]) -> None:
        self._forms = forms  # of rank, of tensor
        self._rows = rows  # the values of a rank, as bytes
        self._devices = devices
        self._starts: list[int] = []
        self._whole: Tensor | None = None

    @classmethod
    def whole(cls, forms: list[list[_Form]], values: Tensor, device: torch.device) -> Received:
        """One tensor of the same shape on every process; its values stand in one piece."""
        result = cls(forms, [], [device])
        result._whole = values
        return result

    def shapes(self, index: int) -> list[tuple[int, ...]]:
        """The shape of one tensor on every rank."""
        return [own[index].shape for own in self._forms]

    def pieces(self, index: int) -> list[Tensor]:
        """One tensor of every rank."""
        if self._whole is not None:
            return list(self._whole.view(len(self._forms), *self._forms[0][0].shape).to(self._devices[0]).unbind())
        return [self._piece(rank, index) for rank in range(len(self._forms))]

    def of(self, rank: int, index: int) -> Tensor:
        """One tensor of one rank."""
        return self._piece(rank, index) if self._whole is None else self.pieces(index)[rank]

    def joined(self, index: int) -> Tensor | None:
        """One tensor of every rank, joined along the first dimension without a copy; None where that takes one."""
        if self._whole is None or not self._forms[0][0].shape:
            return None
        rows, *others = self._forms[0][0].shape
        return self._whole.view(len(self._forms) * rows, *others).to(self._devices[0])

    def _piece(self, rank: int, index: int) -> Tensor:
        form = self._forms[rank][index]
        start = sum(_aligned(other.nbytes) for other in self._forms[rank][:index])
        values = self._rows[rank][start : start + form.nbytes]
        return values.view(form.dtype).reshape(form.shape).to(self._devices[index])


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
    forms = torch.tensor(_numbers_of(tensors), dtype=torch.int64).view(torch.uint8)
    own = _Head(
        _NUMBERS.get(call, _OTHER), detail, len(tensors), forms.numel(), sum(_aligned(p.numel()) for p in parts)
    )
    first = _gathered(world, _first(world, own, forms, parts), call)
    heads = [_Head(*numbers) for numbers in _as_numbers(first[:, :_PREFIX], 5)]
    _check_calls(world, heads)
    return _received(world, _Own(tensors, forms, parts), heads, first, call, source)


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
    head_bytes = _aligned(8 * sum(2 + tensor.ndim for tensor in tensors))
    return _PREFIX + head_bytes + sum(_aligned(t.numel() * t.dtype.itemsize) for t in tensors) <= SMALL


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
    return tensor.detach().resolve_conj().resolve_neg().to(device).contiguous().reshape(-1).view(torch.uint8)


def aligned_bytes_of(tensor: Tensor, device: torch.device) -> Tensor:
    """As `bytes_of`, with zeros up to where a value of any dtype may begin."""
    flat = bytes_of(tensor, device)
    more = _aligned(flat.numel()) - flat.numel()
    return flat if more == 0 else torch.cat([flat, flat.new_zeros(more)])


def _aligned(count: int) -> int:
    return -(-count // ALIGN) * ALIGN


def _numbers_of(tensors: list[Tensor]) -> list[int]:
    numbers: list[int] = []
    for tensor in tensors:
        numbers += (_CODES.get(tensor.dtype, -1), tensor.ndim, *tensor.shape)
    return numbers + [0] * (len(numbers) % 2)


def _as_numbers(rows: Tensor, count: int) -> list[list[int]]:
    numbers: list[list[int]] = rows.contiguous().view(torch.int64)[:, :count].tolist()
    return numbers


def _first(world: World, own: _Head, forms: Tensor, parts: list[Tensor]) -> Tensor:
    message = torch.zeros(SMALL, dtype=torch.uint8)
    numbers = torch.tensor([own.call, own.detail, own.count, own.head_bytes, own.payload_bytes], dtype=torch.int64)
    message[: 8 * 5] = numbers.view(torch.uint8)
    if own.shapes_fit:
        message[_PREFIX : _PREFIX + own.head_bytes] = forms
    message = message.to(world.device)
    if own.fits:
        _fill(message, _PREFIX + own.head_bytes, parts)
    return message


def _fill(message: Tensor, at: int, parts: list[Tensor]) -> None:
    for part in parts:
        message[at : at + part.numel()] = part
        at += _aligned(part.numel())


@dataclass(frozen=True, slots=True)
class _Own:
    """What this process brings."""

    tensors: list[Tensor]
    forms: Tensor
    parts: list[Tensor]


def _received(world: World, own: _Own, heads: list[_Head], first: Tensor, call: str, source: int | None) -> Received:
    forms, parts = own.forms, own.parts
    devices = [tensor.device for tensor in own.tensors]
    told: list[list[_Form]] | None = None
    if all(head.shapes_fit for head in heads):
        told = _forms_in(first[:, _PREFIX:], heads)
        _check_dtypes(world, told)
        if all(head.fits for head in heads):
            rows = [first[rank, _PREFIX + head.head_bytes :] for rank, head in enumerate(heads)]
            return Received(told, rows, devices)
        is_one = len(parts) == 1 and all(others == told[0] for others in told)
        if is_one and all(head.payload_bytes == heads[0].payload_bytes for head in heads):
            everything = torch.empty(world.size * parts[0].numel(), dtype=torch.uint8, device=world.device)
            run(_GATHER, call, everything, parts[0])
            return Received.whole(told, everything.view(told[0][0].dtype), devices[0])
    sizes = [head.payload_bytes + (0 if told else head.head_bytes) for head in heads]
    message = torch.empty(max(sizes), dtype=torch.uint8, device=world.device)
    start = 0
    if told is None:
        start = forms.numel()
        message[:start] = forms
    _fill(message, start, parts)
    if told is not None and source is not None:
        run(dist.broadcast, call, message, src=source)
        return Received(told, [message] * world.size, devices)
    second = _gathered(world, message, call)
    if told is None:
        told = _forms_in(second, heads)
        _check_dtypes(world, told)
        return Received(told, [second[rank, head.head_bytes :] for rank, head in enumerate(heads)], devices)
    return Received(told, list(second), devices)


def _forms_in(rows: Tensor, heads: list[_Head]) -> list[list[_Form]]:
    most = max(head.head_bytes for head in heads)
    result = []
    for numbers, head in zip(_as_numbers(rows[:, :most], most // 8), heads, strict=True):
        at = 0
        forms = []
        for _ in range(head.count):
            dims = numbers[at + 1]
            forms.append(_Form(DTYPES[numbers[at]], tuple(numbers[at + 2 : at + 2 + dims])))
            at += 2 + dims
        result.append(forms)
    return result


def _gathered(world: World, message: Tensor, call: str) -> Tensor:
    out = torch.empty((world.size * message.numel(),), dtype=torch.uint8, device=message.device)
    run(_GATHER, call, out, message)
    return out.view(world.size, message.numel())


def run(collective: Callable[..., Any], call: str, *arguments: Any, **options: Any) -> None:
    """A collective of PyTorch, watched under the name of what the script called."""
    wait(lambda: collective(*arguments, **options, async_op=True), call or CALLS[_OTHER])


def _check_calls(world: World, heads: list[_Head]) -> None:
    first = heads[0]
    if all(head.call == first.call and head.detail == first.detail and head.count == first.count for head in heads):
        return
    if any(head.call != first.call for head in heads):
        _disagree(world, "are in different calls", [CALLS[head.call] for head in heads], _SAME_CALL)
    name = CALLS[first.call]
    if any(head.count != first.count for head in heads):
        counts = [f"{head.count} tensors" for head in heads]
        _disagree(world, f"bring different numbers of tensors to {name}", counts, _SAME)
    details = [str(head.detail) for head in heads]
    _disagree(world, f"call {name} with different arguments", details, _SAME)


def _check_dtypes(world: World, told: list[list[_Form]]) -> None:
    dtypes = [[form.dtype for form in own] for own in told]
    if any(own != dtypes[0] for own in dtypes):
        _disagree(world, "bring different dtypes", [", ".join(map(str, own)) for own in dtypes], _SAME)


def _check_forms(received: Received, call: str, world: World, count: int) -> None:
    shapes = [[received.shapes(index)[rank] for index in range(count)] for rank in range(world.size)]
    if any(own != shapes[0] for own in shapes):
        texts = [", ".join(map(str, own)) for own in shapes]
        _disagree(world, f"bring different shapes to {call}", texts, _SAME)


def _disagree(world: World, what: str, seen: list[str], way_out: str) -> None:
    """Every process comes here in the same exchange, so all can tell each other where they are."""
    places: list[Any] = [None] * world.size
    dist.all_gather_object(places, place_of_caller())
    lines = "".join(f"\n  rank {rank}: {said}    at {places[rank]}" for rank, said in enumerate(seen))
    raise CollectiveError(f"the processes {what}:{lines}\n{way_out}", told_by=0)
