"""Work that is done by several processes where that is faster, and gives the same.

Only where a process can be forked: it then has all that was read and imported, and nothing is sent but results. A
process that is started from nothing would take longer for its imports than most runs take.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Result = TypeVar("Result")

# Bytes of sources that are analysed in about half a second, which forking and handing results over must not outweigh.
PAYS_FROM = 150_000


def count(sizes: Sequence[int], jobs: int) -> int:
    """How many processes pay for pieces of work of these sizes, in bytes; `jobs` 0: as many as there are cores."""
    if sys.platform == "darwin" or not hasattr(os, "fork"):  # on macOS, a forked process may not use all of the system
        return 1
    if jobs:
        return 1 if _Process.is_forked else min(jobs, len(sizes)) or 1  # no more than are wanted in all
    beside = sum(sizes) - max(sizes, default=0)  # what others could do while one does the largest piece
    return min(_cores(), len(sizes)) if beside >= PAYS_FROM else 1


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def results(work: Callable[[int], Result], sizes: Sequence[int], processes: int) -> Iterator[tuple[int, Result]]:
    """The results of `work(0)`, `work(1)`, ..., each with its number, as they are there; large pieces go first."""
    if processes < 2:
        yield from ((number, work(number)) for number in range(len(sizes)))
        return
    import multiprocessing  # most runs have little to do
    from concurrent.futures import ProcessPoolExecutor, as_completed

    forking = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, mp_context=forking, initializer=_begin, initargs=(work,)) as pool:
        numbers = sorted(range(len(sizes)), key=lambda number: -sizes[number])
        waiting = {pool.submit(_work, number): number for number in numbers}
        try:
            for done in as_completed(waiting):
                number = waiting[done]
                try:
                    result = done.result()
                except Exception:  # noqa: BLE001 (a process was ended, or what it made cannot be sent: once more, here)
                    result = work(number)
                yield number, result
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Process:
    """A forked process: what it does is what was in memory when it was forked."""

    work: Callable[[int], Any]
    is_forked = False


def _begin(work: Callable[[int], Any]) -> None:
    _Process.work, _Process.is_forked = work, True


def _work(number: int) -> Any:
    return _Process.work(number)
