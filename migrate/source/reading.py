"""The bytes of a file in which a person may have written a program; of no other."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20
# The tree of a source takes about a hundred times the source, so a larger one would cost the run, not the file. The
# largest that people or generators write have a few MiB; a notebook holds the pictures that it has shown, too.
LARGEST_BYTES = 8 * MIB
LARGEST_NOTEBOOK_BYTES = 256 * MIB


class TooLargeError(OSError):
    """A file has more bytes than any source."""


def content_of(real: Path | str) -> bytes:
    """The bytes of a regular file.

    Raises:
        TooLargeError: before anything of it is read.
        OSError: it cannot be read, or is something else, such as a pipe, on which reading would wait for ever.
    """
    with open(real, "rb", opener=_without_waiting) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        most = LARGEST_NOTEBOOK_BYTES if str(real).endswith(".ipynb") else LARGEST_BYTES
        if status.st_size > most:
            what = f"the file has {status.st_size // MIB:,} MiB, and no more than {most // MIB} are read"
            raise TooLargeError(errno.EFBIG, what)
        return stream.read()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
