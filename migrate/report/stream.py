"""Text on its way to a terminal, a pipe or a file, and the one line that is said where there is nothing to report."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from migrate.errors import MigrateError, reason_of

if TYPE_CHECKING:
    from typing import TextIO

NO_LOOPS = "No plain training loops.\n"  # the last line of a check that has found nothing


def emit(text: str | bytes, stream: TextIO) -> None:
    """Write to standard output or standard error, whatever the bytes and whatever the terminal's encoding.

    A reader that has gone away (`| head`) is no error.

    Raises:
        MigrateError: it cannot be written, because a disk is full, say.
    """
    content = text if isinstance(text, bytes) else _encoded(text, stream.encoding or "utf-8")
    try:
        stream.flush()
        stream.buffer.write(content)
        stream.buffer.flush()
    except BrokenPipeError:
        _forget(stream)
    except OSError as error:
        _forget(stream)
        name = "standard error" if stream is sys.stderr else "standard output"
        what = f"{name} cannot be written: {reason_of(error)}"
        raise MigrateError(what, "Make room, or lead it elsewhere.") from error


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding, "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace")


def _forget(stream: TextIO) -> None:
    """Let what is still to come, and Python's flush at the end, go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
