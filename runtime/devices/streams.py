"""Queues of work on a device, as far as copying a batch beside the computation needs them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor


class Streams(Protocol):
    """The streams of one device."""

    def make(self) -> Any:
        """A new stream."""

    def current(self) -> Any:
        """The stream that the program's work goes to."""

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        """A context in which work goes to this stream."""

    def pinned(self, tensor: Tensor) -> Tensor:
        """A copy in host memory that the device reads by itself."""

    def keep(self, tensor: Tensor, stream: Any) -> None:
        """The tensor's memory is not given to others before the work on this stream is done."""


class CudaStreams:
    """Those of a GPU."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def make(self) -> Any:
        return torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]

    def current(self) -> Any:
        return torch.cuda.current_stream(self._device)

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        return torch.cuda.stream(stream)

    def pinned(self, tensor: Tensor) -> Tensor:
        return tensor.pin_memory()

    def keep(self, tensor: Tensor, stream: Any) -> None:
        if tensor.is_cuda:
            tensor.record_stream(stream)
