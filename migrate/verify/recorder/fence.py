"""Writes stay in the copy. Two fences, for each sees what the other does not.

The audit hook of Python sees every `open` and names the path and the line; it does not see what C code, or a program
that the script starts, opens. Linux's Landlock refuses these as well, and cannot be taken off again; it says only
EACCES. Where there is no Landlock, the script may start no other program.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from migrate.verify.order import PARALLEL
from migrate.verify.recorder.journal import Journal

#: Which arguments of an event are a path that changes and, where it may be told, the open folder that the path starts
#: from: `shutil.rmtree` names files so. https://docs.python.org/3/library/audit_events.html
CHANGED: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.remove": ((0, 1),), "os.rename": ((0, 2), (1, 3)), "os.mkdir": ((0, 2),), "os.rmdir": ((0, 1),),
    "os.link": ((1, 3),), "os.symlink": ((1, 2),), "os.truncate": ((0, None),), "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),), "os.utime": ((0, 3),), "sqlite3.connect": ((0, None),),
}  # fmt: skip
STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: What a process may write anywhere: its terminal, memory that is shared, what the kernel offers.
DEVICES = ("/dev", "/proc")
#: Several processes that do not wait for each other mostly come in the order that is right. So the first process is
#: held up before it writes a path for the first time, and each before it makes a folder: who does not wait is early.
HELD_S = 0.25
HELD = 6  # paths for which that is done

# linux/landlock.h; the numbers of the system calls are the same on all architectures.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH, VERSION = 1, 1
WRITE_RIGHTS = (1 << 1) | sum(1 << bit for bit in range(4, 13))  # write a file; remove and make what is in a folder
RIGHTS_SINCE = {2: 1 << 13, 3: 1 << 14}  # link or rename into another folder; truncate
NO_NEW_PRIVILEGES = 38  # linux/prctl.h


class OutsideError(PermissionError):
    """A write outside of the copy."""


class Fence:
    """What this process may write, and a note of each attempt at anything else."""

    def __init__(self, journal: Journal, writable: Sequence[str], *, holds: bool = False) -> None:
        self._journal = journal
        self._holds = holds and journal.size > 1
        self._held: set[str] = set()
        self._roots = tuple(os.path.realpath(path) for path in (*writable, *DEVICES))
        self._own = threading.local()  # what the hook itself does is not watched
        self._is_kernel = False

    def close(self) -> None:
        """From now on; there is no way back."""
        self._is_kernel = sys.platform == "linux" and _restrict(self._roots)
        self._journal.write("fence", kernel=self._is_kernel)
        sys.addaudithook(self._watch)

    def check(self, path: Any) -> None:
        """Note a write that C code makes, which the hook does not see.

        Raises:
            OutsideError: it is outside of the copy.
        """
        self._own.is_busy = True
        try:
            self._changes("open", path, flags=os.O_WRONLY | os.O_TRUNC)
        finally:
            self._own.is_busy = False

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" and event not in CHANGED and event not in STARTS:
            return
        if getattr(self._own, "is_busy", False):
            return
        self._own.is_busy = True
        try:
            if event in STARTS:
                self._starts(str(arguments[0]))
            elif event != "open":
                paths = [_full(arguments[path], folder and arguments[folder]) for path, folder in CHANGED[event]]
                for path in paths:
                    self._changes(event, path)
                if event == "os.rename":
                    self._journal.write("renamed", old=_absolute(paths[0]), new=_absolute(paths[1]))
            elif isinstance(arguments[2], int) and arguments[2] & WRITES:
                self._changes(event, arguments[0], flags=arguments[2])
        finally:
            self._own.is_busy = False

    def _changes(self, event: str, path: Any, *, flags: int | None = None) -> None:
        """A path that changes; with flags, what it leads to is opened."""
        if isinstance(path, int) or not path or path == ":memory:":
            return
        absolute = _absolute(path)
        folder, name = os.path.split(absolute)
        entry = os.path.join(os.path.realpath(folder), name)
        real = entry if flags is None else os.path.realpath(absolute)
        if event == "os.mkdir" and os.path.isdir(real):
            return
        place = self._journal.place()
        if flags is not None and not self._is_inside(real) and self._is_inside(entry) and os.path.islink(entry):
            _replace_link(entry, real, is_emptied=bool(flags & os.O_TRUNC))
        elif not self._is_inside(real):
            self._refuse(real, place)
        if self._holds:
            self._hold_up(event, absolute)
        if event != "os.utime" and not _opens_log(flags):
            self._journal.write("file", path=absolute, how=event, place=place, library=_library())

    def _hold_up(self, event: str, path: str) -> None:
        if path in self._held or len(self._held) >= HELD or (self._journal.rank and event != "os.mkdir"):
            return
        self._held.add(path)
        time.sleep(HELD_S)

    def _is_inside(self, path: str) -> bool:
        return any(path == root or path.startswith(root + os.sep) for root in self._roots)

    def _starts(self, program: str) -> None:
        place = self._journal.place()
        if not self._is_kernel and place:
            self._refuse(program, place, is_program=True)

    def _refuse(self, path: str, place: str, *, is_program: bool = False) -> None:
        self._journal.write("refused", path=path, place=place, program=is_program)
        what = "starts a program, whose writes cannot be watched here" if is_program else "is outside of the copy"
        raise OutsideError(errno.EACCES, f"migrate --verify: {what}", path)


def _replace_link(link: str, target: str, *, is_emptied: bool) -> None:
    """Let a file of the copy take the place of a link to a large one of the user's: it is about to be written."""
    if os.path.isdir(target):
        return
    os.unlink(link)
    if not is_emptied and os.path.exists(target):
        shutil.copyfile(target, link)


def _full(path: Any, folder: int | None) -> Any:
    """A path with the open folder that it starts from; -1 stands for the current one."""
    if folder is None or folder < 0 or isinstance(path, int):
        return path
    if sys.platform == "darwin":
        import fcntl

        start = os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    else:
        start = os.readlink(f"/proc/self/fd/{folder}")
    return os.path.join(start, os.fsdecode(path))


def _absolute(path: Any) -> str:
    return os.path.abspath(os.fsdecode(path))


def _library() -> str:
    """The package that makes programs parallel, if the write is its own; else nothing."""
    return next((name for name in _callers() if name in PARALLEL), "")


def _opens_log(flags: int | None) -> bool:
    """Whether `logging` opens a file to append to: nothing is written before a process logs something."""
    return bool(flags and flags & os.O_APPEND) and "logging" in _callers()


def _callers() -> Iterator[str]:
    """The packages whose code is running, the innermost first."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the only way to a frame without a traceback
    while frame is not None:
        yield str(frame.f_globals.get("__name__", "")).partition(".")[0]
        frame = frame.f_back


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _restrict(roots: Sequence[str]) -> bool:
    """Have the kernel refuse writes anywhere else; False where it cannot."""
    kernel = ctypes.CDLL(None, use_errno=True)
    version = kernel.syscall(CREATE_RULESET, None, 0, VERSION)
    if version < 1:
        return False
    rights = WRITE_RIGHTS | sum(right for since, right in RIGHTS_SINCE.items() if version >= since)
    rules = kernel.syscall(CREATE_RULESET, ctypes.byref(_Ruleset(rights)), ctypes.sizeof(_Ruleset), 0)
    if rules < 0:
        return False
    try:
        for root in roots:
            if not _allow(kernel, rules, root, rights):
                return False
        return bool(kernel.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and kernel.syscall(RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(kernel: ctypes.CDLL, rules: int, root: str, rights: int) -> bool:
    if not os.path.isdir(root):
        return True
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        beneath = ctypes.byref(_Beneath(rights, folder))
        return bool(kernel.syscall(ADD_RULE, rules, PATH_BENEATH, beneath, 0) == 0)
    finally:
        os.close(folder)
