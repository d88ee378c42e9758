"""How far a long run is, on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from migrate.report.text import emit

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRESS_FROM = 200  # files: a shorter run is over before a person wonders


def progress(*, quiet: bool) -> Callable[[int], None]:
    """Says how many files were read, on a terminal; 0 wipes the line."""
    if quiet or not sys.stderr.isatty():
        return lambda _: None

    def show(count: int) -> None:
        if count == 0:
            emit("\r\x1b[K", sys.stderr)
        elif count > PROGRESS_FROM and count % 50 == 1:
            emit(f"\rmigrate: {count:,} files read", sys.stderr)

    return show
