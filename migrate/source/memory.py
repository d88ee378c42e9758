"""Work that makes many objects and drops few."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


PATIENCE = 200_000  # objects that are made before garbage is looked for; mypy has the same number


@contextmanager
def to_the_end() -> Iterator[None]:
    """For the whole work of a process, which ends with it: what is left then need not be looked through for garbage.

    Nor what is made, until there is a lot of it: most of that are modules, which stay. (A tenth of the time that the
    check of one small file takes.)
    """
    gc.set_threshold(PATIENCE)
    try:
        yield
    finally:
        gc.freeze()


@contextmanager
def uncollected() -> Iterator[None]:
    """Without looking for garbage cycles.

    A syntax tree has none, and looking for them takes three times as long as parsing (measured on 137,000 lines).
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def passing() -> Iterator[Callable[[], object]]:
    """Gives a function that drops what was made since: what was there before is not looked through for that.

    Facts of a project are garbage cycles of some ten megabytes; a hundred of them, made one after the other, need not
    all be there at a time.
    """
    is_ours = not gc.get_freeze_count()  # what somebody else has frozen stays so
    if is_ours:
        gc.freeze()
    try:
        yield gc.collect
    finally:
        if is_ours:
            gc.unfreeze()
