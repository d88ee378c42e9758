"""How far a long run is, on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from migrate.report.stream import emit

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRESS_FROM = 200  # files: a shorter run is over before a person wonders


def progress(*, quiet: bool) -> Callable[[int], None]:
    """Says how many files were read, on a terminal; 0 wipes what was said."""
    if quiet or not sys.stderr.isatty():
        return lambda _: None

    is_shown = False

    def show(count: int) -> None:
        nonlocal is_shown
        if count == 0 and is_shown:
            emit("\r\x1b[K", sys.stderr)
            is_shown = False
        elif count > PROGRESS_FROM and count % 50 == 1:
            emit(f"\rmigrate: {count:,} files read", sys.stderr)
            is_shown = True

    return show
