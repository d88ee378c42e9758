"""What a script has left in open files is written where its process ends without its interpreter's own end.

Nothing but the standard library: `launch/child.py` finds this file by its place.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

PATIENCE_S = 5.0  # for one file of a process that has failed: a thread that will not come back may hold its lock
STUCK_AT_MOST = 3  # files that are given up; what is left then is lost, since the process is to end


def end_process(status: int, patience_s: float = PATIENCE_S) -> NoReturn:
    """End this process with its exit handlers run and all that it wrote in its files, and nothing torn down."""
    atexit._run_exitfuncs()  # noqa: SLF001 - what the interpreter runs next
    write_open_files(patience_s)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or replaced by the script
            stream.flush()
    os._exit(status)


def write_open_files(patience_s: float = PATIENCE_S, *, is_last: bool = True) -> None:
    """Write all of it, as an interpreter would at its end: `log = csv.writer(open(path, "w"))`.

    What encodes or compresses goes before what that writes to. What compresses is closed, for its last bytes; no other
    file is, since threads that go on may still use it. The standard streams are left to the caller.

    Args:
        is_last: False closes nothing: the script may write more.
    """
    rest = iter(_ends(is_last=is_last))
    for _ in range(STUCK_AT_MOST):
        thread = threading.Thread(target=_call, args=(rest,), name="write open files", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # Python 3.12 and later start none once the interpreter is on its way out
            _call(rest)
            return
        thread.join(patience_s)
        if not thread.is_alive():
            return


def _ends(*, is_last: bool) -> list[Callable[[], object]]:
    kept = {id(stream) for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)}
    # By their type: an object that stands for another one may do anything when it is asked for its class.
    files = [each for each in gc.get_objects() if issubclass(type(each), io.IOBase) and id(each) not in kept]
    plain = [each for each in files if issubclass(type(each), (io.BufferedWriter, io.BufferedRandom, io.RawIOBase))]
    texts = [each for each in files if issubclass(type(each), io.TextIOBase)]
    known = {id(each) for each in (*plain, *texts)}
    others = [each for each in files if id(each) not in known]
    compressed = [each.close if is_last else each.flush for each in others]
    return [*(each.flush for each in texts), *compressed, *(each.flush for each in plain)]


def _call(ends: Iterator[Callable[[], object]]) -> None:
    """What is left of `ends`: another thread goes on with it where this one gets stuck."""
    for end in ends:
        with contextlib.suppress(Exception):  # closed, or whatever it is: the others are to be written all the same
            end()
