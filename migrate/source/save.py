"""Files out: all of them or none, and each of them at any moment either old or new.

Every new content is first written next to its file and forced to the disk. Only when all are there, and no original
has changed since it was read, do they take the originals' places, one `rename` each. If one of these fails, those that
went before it are put back. Renaming, not writing in place, also where a file has several hard links: the other names
keep the old content, which is right for the stores and backups that link files (and is said in a remark).
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.errors import WriteError, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Machine, process, chance. A temporary file whose process is gone is a leftover of a killed run.
TEMPORARY = re.compile(r"\.migrate-([\w-]+)-(\d+)-[0-9a-f]{8}\.tmp")
STALE_S = 24 * 3600  # for those of other machines (a shared folder, a container that is gone) we can only go by age
MACHINE = re.sub(r"[^A-Za-z0-9]", "-", socket.gethostname()) or "-"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A file that is to be replaced."""

    path: str  # for messages
    real: Path  # what is replaced: no link, so links stay links
    old: bytes
    new: bytes


@dataclass(frozen=True, slots=True)
class _Staged:
    rewrite: Rewrite
    new: Path  # path of the new content
    old: Path  # path of a second name of the original


def save(rewrites: Sequence[Rewrite]) -> tuple[str, ...]:
    """Replace every file, keeping its permissions and owner; gives back remarks.

    Raises:
        WriteError: nothing was changed.
    """
    staged: list[_Staged] = []
    try:
        for rewrite in rewrites:
            _check_permission(rewrite)
        remarks = tuple(filter(None, map(_hard_links, rewrites)))
        for rewrite in rewrites:
            staged.append(_stage(rewrite))  # noqa: PERF401 (one by one: what is staged must be known when one fails)
        for rewrite in rewrites:
            _check_unchanged(rewrite)
        _replace(staged)
    finally:
        for one in staged:
            _remove(one.new)
            _remove(one.old)
    for folder in sorted({rewrite.real.parent for rewrite in rewrites}):
        _sync_folder(folder)
    return remarks


def _replace(staged: list[_Staged]) -> None:
    """Let the new contents take their places; on any failure, Ctrl-C too, put the originals back."""
    done: list[_Staged] = []
    try:
        for one in staged:
            _check_unchanged(one.rewrite, one.rewrite.new)  # another run may have come to the same
            done.append(one)  # first, so that an interruption after the rename is undone as well
            one.new.replace(one.rewrite.real)
            _check_not_late(one)
    except BaseException as error:
        lost = [one for one in reversed(done) if not _put_back(one)]
        if lost:
            staged[:] = [one for one in staged if one not in lost]  # their originals must not be cleaned away
            what = f"{reason_of(error)}, and some originals could not be put back"
            names = ", ".join(f"{one.old} to {one.rewrite.real}" for one in lost)
            raise WriteError(what, f"Move {names} yourself.", path=done[-1].rewrite.path) from error
        if isinstance(error, OSError):
            raise _refused(done[-1].rewrite, error) from error
        raise


def _put_back(one: _Staged) -> bool:
    try:
        if one.rewrite.real.read_bytes() not in {one.rewrite.old, one.rewrite.new}:
            return False  # somebody has edited it since
        one.old.replace(one.rewrite.real)
    except OSError:
        return False
    return True


def _stage(rewrite: Rewrite) -> _Staged:
    """The new content beside the file, and the original under a second name."""
    new = _temporary(rewrite)
    old = _temporary(rewrite)
    try:
        _write(new, rewrite.new, rewrite.real)
        try:
            old.hardlink_to(rewrite.real)
        except OSError:  # a file system without hard links, or a file of somebody else's
            _write(old, rewrite.old, rewrite.real)
    except BaseException as error:
        _remove(new)
        _remove(old)
        if isinstance(error, OSError):
            raise _refused(rewrite, error) from error
        raise
    return _Staged(rewrite, new, old)


def _temporary(rewrite: Rewrite) -> Path:
    name = f".migrate-{MACHINE}-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    return rewrite.real.with_name(name)


def _write(path: Path, content: bytes, like: Path) -> None:
    """A new file on the disk, with the permissions and, where we may, the owner of another."""
    status = like.stat()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(path, status.st_uid, status.st_gid)
    path.chmod(stat.S_IMODE(status.st_mode))  # after chown, which clears setuid and setgid


def _check_permission(rewrite: Rewrite) -> None:
    """A rename would succeed on a read-only file, and break its owner's intention."""
    if rewrite.real.exists() and not os.access(rewrite.real, os.W_OK):
        way_out = "Give yourself permission to write it, or leave it out. Nothing was written."
        raise WriteError("the file is read-only", way_out, path=rewrite.path)


def _check_unchanged(rewrite: Rewrite, *others: bytes) -> None:
    try:
        now = rewrite.real.read_bytes()
    except OSError as error:
        raise _refused(rewrite, error) from error
    if now not in {rewrite.old, *others}:
        raise _changed(rewrite)


def _check_not_late(one: _Staged) -> None:
    """Has somebody written into the original after it was looked at? Its second name has what they wrote."""
    if one.old.read_bytes() != one.rewrite.old:
        raise _changed(one.rewrite)


def _changed(rewrite: Rewrite) -> WriteError:
    return WriteError("the file changed while it was converted", "Nothing was written: run again.", path=rewrite.path)


def _hard_links(rewrite: Rewrite) -> str:
    with contextlib.suppress(OSError):
        others = rewrite.real.stat().st_nlink - 1
        if others > 0:
            names = "1 other name" if others == 1 else f"{others} other names"
            return f"{rewrite.path}: the file has {names} (hard links), which keep the old content"
    return ""


def _refused(rewrite: Rewrite, error: OSError) -> WriteError:
    way_out = "Nothing was written."
    if isinstance(error, PermissionError):
        way_out = f"migrate writes beside the file first: allow it to write in its folder. {way_out}"
    return WriteError(f"cannot be written: {reason_of(error)}", way_out, path=rewrite.path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the renames last through a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def clean(folders: Iterable[Path]) -> None:
    """Remove temporary files that killed runs left in these folders."""
    for folder in sorted(set(folders)):
        with contextlib.suppress(OSError), os.scandir(folder) as listing:
            for entry in listing:
                match = TEMPORARY.fullmatch(entry.name)
                if match and _is_stale(entry, match[1], int(match[2])):
                    _remove(Path(entry.path))


def _is_stale(entry: os.DirEntry[str], machine: str, process: int) -> bool:
    # Not the time of modification: a second name of an original has that of the original.
    if time.time() - entry.stat(follow_symlinks=False).st_ctime > STALE_S:
        return True
    return machine == MACHINE and process != os.getpid() and not _runs(process)


def _runs(process: int) -> bool:
    if os.name == "nt":  # os.kill would end the process there; such leftovers go by age
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's, but there
        return True
    return True
