"""A document that a run makes beside the files that it converts: written whole or not at all, over nothing else."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.errors import UsageError, WriteError, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SOURCES = frozenset({".py", ".pyi", ".pyw", ".ipynb"})  # of these even an empty one is somebody's
HEAD_BYTES = 4096  # by which a document is known


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of document."""

    word: str  # what messages call it
    example: str  # a name that one may have
    is_ours: Callable[[bytes], bool]  # whether an earlier one begins with these bytes


def check(path: str, kind: Kind, inputs: Iterable[Path] = ()) -> None:
    """See that a document can be written to a path, where an earlier one of its kind may be.

    Raises:
        UsageError: the path is a folder, in no folder, a file that was read, or one that holds something else.
    """
    real = Path(path).resolve()
    if real.is_dir():
        raise UsageError(f"{path} is a folder", f"Name a file in it: {os.path.join(path, kind.example)}.")
    if not real.parent.is_dir():
        raise UsageError(f"{real.parent} is no folder", "Make it first, or name another file.")
    if not real.exists():
        return
    if not real.is_file():
        raise UsageError(f"{path} is no ordinary file", "Name another one.")
    if any(_is_same(real, other) for other in inputs):
        raise UsageError(f"{path} is one of the files that are read", f"Name another file for the {kind.word}.")
    with real.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if not kind.is_ours(head) and (head or real.suffix in SOURCES):
        what = f"{path} is there already, and is no {kind.word} of migrate"
        raise UsageError(what, "Name another file, or delete it.")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two names lead to one file: hard links, too."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def write(path: str, content: bytes, kind: Kind) -> None:
    """Put a document in its place, in one step; links are followed.

    Raises:
        WriteError: it cannot be written; what was there is still there.
    """
    import secrets  # few runs make a document

    real = Path(path).resolve()
    new = real.with_name(f".{real.name[:100]}-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else None
        if mode is not None and not os.access(real, os.W_OK):
            raise PermissionError(None, "the file is read-only")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            new.chmod(mode)
        new.replace(real)
    except OSError as error:
        what = f"the {kind.word} cannot be written: {reason_of(error)}"
        raise WriteError(what, "Name another file.", path=path) from error
    finally:
        with contextlib.suppress(OSError):
            new.unlink()
