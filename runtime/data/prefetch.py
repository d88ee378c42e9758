"""How batches get to the device: not at all, one by one, or one batch ahead on a stream of its own.

A copy that runs beside the computation must not change what a program computes. So a batch is only fetched ahead where
workers make it and nothing but PyTorch's own samplers says which it is: else a data set or a sampler would draw its
random numbers before the step that the plain program draws them after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from runtime.devices import Streams, in_host_memory, moved
from runtime.tree import leaves, map_leaves


class Stay:
    """Batches are where they are needed."""

    def through(self, steps: Iterator[Any]) -> Iterator[Any]:
        """The steps (batch, share) with their batches on the device."""
        return steps


class Move(Stay):
    """Every batch is copied when it is asked for."""

    def __init__(self, device: torch.device, non_blocking: bool) -> None:
        self._device = device
        self._non_blocking = non_blocking

    def through(self, steps: Iterator[Any]) -> Iterator[Any]:
        return ((moved(batch, self._device, self._non_blocking), share) for batch, share in steps)


class Spread(Move):
    """The same, and the device shares every batch out over its chips."""

    def __init__(self, device: torch.device, non_blocking: bool, spread: Callable[[Any], Any]) -> None:
        super().__init__(device, non_blocking)
        self._spread = spread

    def through(self, steps: Iterator[Any]) -> Iterator[Any]:
        return ((self._spread(batch), share) for batch, share in super().through(steps))


class Ahead(Stay):
    """While the script computes with a batch, the next one is copied, from pinned memory, on a stream of its own."""

    def __init__(self, device: torch.device, streams: Streams) -> None:
        self._device = device
        self._streams = streams
        self._side: Any = None

    def through(self, steps: Iterator[Any]) -> Iterator[Any]:
        if self._side is None:
            self._side = self._streams.make()
        waiting = None
        for batch, share in _to_the_end(steps):
            following = (batch if isinstance(batch, _Failure) else self._sent(batch), share)
            if waiting is not None:
                yield self._arrived(*waiting)
            waiting = following
        if waiting is not None:
            yield self._arrived(*waiting)

    def _sent(self, batch: Any) -> Any:
        if any(not isinstance(leaf, Tensor) and callable(getattr(leaf, "to", None)) for leaf in leaves(batch)):
            return moved(batch, self._device)  # its tensors cannot be seen, so nobody could keep their memory
        with self._streams.on(self._side):
            return moved(map_leaves(self._pinned, batch), self._device, non_blocking=True)

    def _pinned(self, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or not in_host_memory(leaf.device) or leaf.is_pinned():
            return leaf
        return self._streams.pinned(leaf)

    def _arrived(self, batch: Any, share: Any) -> tuple[Any, Any]:
        """The batch, for the stream that computes: it waits for the copy, and the memory waits for it."""
        if isinstance(batch, _Failure):
            raise batch.error
        current = self._streams.current()
        current.wait_stream(self._side)
        for leaf in leaves(batch):
            if isinstance(leaf, Tensor):
                self._streams.keep(leaf, current)
        return batch, share


class _Failure:
    """What ended the steps; the batch before it is still to be given."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def _to_the_end(steps: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from steps
    except Exception as error:  # noqa: BLE001  raised again, one step later
        yield _Failure(error), None


def transfer(
    device: torch.device | None,
    streams: Streams | None,
    *,
    non_blocking: bool,
    may_look_ahead: bool,
    spread: Callable[[Any], Any] | None = None,
) -> Stay:
    """The way to the device that suits a loader; None: batches stay where they are."""
    if device is None:
        return Stay()
    if spread is not None:
        return Spread(device, non_blocking, spread)
    if streams is None or not may_look_ahead:
        return Move(device, non_blocking)
    return Ahead(device, streams)
