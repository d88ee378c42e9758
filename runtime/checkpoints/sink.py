"""A file that is on the disk when it is closed, or an error."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

_MOST = 2**30  # bytes in one call; Linux takes a little less than 2**31


class Sink:
    """A new file, written without a buffer.

    The first error is kept and raised at the end: `torch.save` writes from C++, where an exception of Python on the way
    would come out as another one.
    """

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
        self._path = path
        self._error: OSError | None = None

    def write(self, data: bytes | memoryview) -> int:
        """Write all of `data`: its size in bytes, also when the disk had no room (see the class)."""
        view = memoryview(data).cast("B")
        size = len(view)
        try:
            while self._error is None and view:
                view = view[os.write(self._handle, view[:_MOST]) :]
        except OSError as error:
            error.filename = str(self._path)
            self._error = error
        return size

    def flush(self) -> None:
        """Nothing waits in a buffer; `torch.save` asks for it."""

    def __enter__(self) -> Sink:  # noqa: PYI034  Self is of Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._handle)
        if self._error is not None:
            raise self._error


def to_disk(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk (fsync)."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open folders
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
