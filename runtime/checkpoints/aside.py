"""The folder that a checkpoint is written in before it has its name.

    <parent>/.aside-<token>/<name>      written here, every file on the disk, the manifest last
    <parent>/<name>                     the rename, and both folders on the disk

A process that is killed leaves the folder aside and nothing else. It holds a lock on it while it lives, so the next
save can tell what was left behind from what another process is writing. An existing checkpoint of the name is
exchanged in one step where the system can do that (Linux); elsewhere it is moved to `.replaced-<token>` for a moment,
and the next save or load puts it back if the process was killed right then.

A folder that holds other files, too, or that cannot be renamed (a mount point, the current folder, a link), stays:

    <target>/.aside-<token>/<name>      written here
    <target>/.publish-<token>           the rename: from now on it counts, and a killed process's work is finished
    <target>/...                        file by file, the manifest last
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from runtime.checkpoints.layout import MANIFEST, automatic_number, is_state
from runtime.checkpoints.manifest import Manifest
from runtime.checkpoints.sink import to_disk
from runtime.errors import LoadError

_ASIDE = ".aside-"
_REPLACED = ".replaced-"
_PUBLISH = ".publish-"
_HIDDEN = (_ASIDE, _REPLACED, _PUBLISH)
_STALE_S = 24 * 3600  # where folders cannot be locked: nobody writes a checkpoint for a day


class Aside:
    """A checkpoint that is being written. One process makes it; the others write into `folder`."""

    def __init__(self, target: Path, *, is_new: bool = False) -> None:
        """Make the folder, and clear away what killed processes left beside it.

        Args:
            is_new: a checkpoint of that name must not be there.

        Raises:
            OSError: it cannot be made.
        """
        if is_new and target.exists():
            raise FileExistsError(
                f"{target.name} is there already. load_state() first, so that counting goes on after it, or set "
                "ProjectConfiguration(iteration=...)"
            )
        self.target = target
        _make_folders(target.parent)
        recover(target)
        self._stays = _must_stay(target)
        place = target if self._stays else target.parent
        _clear(place)
        self._around, self._lock = _locked_folder(place)
        self.folder = self._around / target.name
        self.folder.mkdir()

    def publish(self) -> None:
        """Give the folder its name, in one step, and have that on the disk.

        Raises:
            OSError: it could not be done; what had the name still has it.
        """
        for folder in [Path(place) for place, _, _ in os.walk(self.folder)]:
            to_disk(folder)
        try:
            if self._stays:
                _move_in(self.folder, self.target)
            elif self.target.exists():
                _replace(self.folder, self.target)
            else:
                os.rename(self.folder, self.target)
            to_disk(self.target.parent)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Clear away what lies aside."""
        shutil.rmtree(self._around, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove(folder: Path) -> None:
    """Remove a checkpoint; it loses its name first, so that no half of it can be found under that.

    Raises:
        OSError: it cannot be renamed.
    """
    around = folder.parent / f"{_ASIDE}{secrets.token_hex(4)}"
    around.mkdir()
    os.rename(folder, around / folder.name)
    shutil.rmtree(around, ignore_errors=True)


def keep_newest(parent: Path, limit: int) -> None:
    """Remove the checkpoints of automatic names in a folder but the `limit` with the largest numbers."""
    numbered = [(automatic_number(path.name), path) for path in parent.iterdir() if path.is_dir()]
    for _, path in sorted((number, path) for number, path in numbered if number is not None)[:-limit]:
        try:
            remove(path)
        except OSError as error:  # the new checkpoint is there all the same
            warnings.warn(f"checkpoint {path} is one too many and cannot be removed: {error}.", stacklevel=2)


def recover(target: Path) -> None:
    """Finish what a process has begun that was killed while it gave a checkpoint its place."""
    for ready in _beside(target, _PUBLISH):
        with contextlib.suppress(OSError, LoadError):  # another process may be doing the same
            _finish(ready, target)
    _put_back(target.parent)


def _put_back(parent: Path) -> None:
    for around in _beside(parent, _REPLACED):
        for old in list(around.iterdir()):
            if not (parent / old.name).exists():
                with contextlib.suppress(OSError):  # another process may be doing the same
                    os.rename(old, parent / old.name)
        shutil.rmtree(around, ignore_errors=True)


def _beside(parent: Path, prefix: str) -> Iterator[Path]:
    if parent.is_dir():
        yield from [path for path in parent.iterdir() if path.name.startswith(prefix) and path.is_dir()]


def _clear(parent: Path) -> None:
    for around in _beside(parent, _ASIDE):
        with contextlib.suppress(OSError):
            lock, is_free = _try_lock(around)
            try:
                if is_free or (is_free is None and time.time() - around.stat().st_mtime > _STALE_S):
                    shutil.rmtree(around, ignore_errors=True)
            finally:
                if lock is not None:
                    os.close(lock)


def _locked_folder(parent: Path) -> tuple[Path, int | None]:
    while True:
        around = parent / f"{_ASIDE}{secrets.token_hex(4)}"
        around.mkdir()
        lock, is_free = _try_lock(around)
        if is_free is not False and around.exists():
            return around, lock
        if lock is not None:  # another process took it for a leftover in the moment between: another one
            os.close(lock)


def _try_lock(folder: Path) -> tuple[int | None, bool | None]:
    """An open handle, and whether the lock on the folder is now ours; None: this system cannot tell."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None, None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return handle, False if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN) else None
    return handle, True


def _make_folders(folder: Path) -> None:
    """Make a folder and those above it, each on the disk."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        to_disk(place.parent)


def _replace(new: Path, target: Path) -> None:
    """Give `new` the name of `target`. The old folder is then where `new` was, or removed."""
    if _exchanged(new, target):
        return
    around = target.parent / f"{_REPLACED}{secrets.token_hex(4)}"
    around.mkdir()
    os.rename(target, around / target.name)
    try:
        os.rename(new, target)
    finally:
        _put_back(target.parent)


def _must_stay(target: Path) -> bool:
    """Whether a folder cannot be replaced as a whole."""
    if not target.exists():
        return False
    here = Path.cwd()
    if target.is_symlink() or os.path.ismount(target) or not os.access(target.parent, os.W_OK):
        return True
    if target.resolve() in (here, *here.parents):
        return True
    known = _files_of(target)
    tops = {name.partition("/")[0] for name in known}
    if any(path.name not in tops and not path.name.startswith(_HIDDEN) for path in target.iterdir()):
        return True
    return any(path.relative_to(target).as_posix() not in known for path in target.rglob("*") if not path.is_dir())


def _files_of(folder: Path) -> set[str]:
    """The files of a checkpoint, by its manifest, or else by their names."""
    try:
        return {MANIFEST, *Manifest.read(folder).files}
    except LoadError:
        return {path.name for path in folder.iterdir() if path.name == MANIFEST or is_state(path.name)}


def _move_in(new: Path, target: Path) -> None:
    """Let the files of a complete checkpoint take the places of those of an old one, among others that stay."""
    ready = target / f"{_PUBLISH}{secrets.token_hex(4)}"
    os.rename(new, ready)
    to_disk(target)
    _finish(ready, target)


def _finish(ready: Path, target: Path) -> None:
    if (ready / MANIFEST).exists():  # else it is in its place already, and so is all the rest
        names = Manifest.read(ready).files
        for stale in _files_of(target) - {MANIFEST, *names}:
            (target / stale).unlink(missing_ok=True)
        for name in names:
            if (ready / name).exists():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(ready / name, target / name)
        for folder in {(target / name).parent for name in names}:
            to_disk(folder)
        os.replace(ready / MANIFEST, target / MANIFEST)
        to_disk(target)
    shutil.rmtree(ready, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Swap the names of two folders in one step; False where the system cannot do that."""
    if sys.platform != "linux":
        return False
    import ctypes  # late: only here

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    current_folder, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE, linux/fs.h
    return int(rename(current_folder, os.fsencode(one), current_folder, os.fsencode(other), exchange)) == 0
