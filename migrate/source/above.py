"""Where a project begins: the folders above a file that may be started from, or imported from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.source.disk import Disk

TOP_MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")  # what the top folder of a project holds


def folders_above(folder: str, here: str, disk: Disk) -> tuple[str, ...]:
    """A folder, those above it up to the project's top, and their `src`; all absolute and without links.

    `here` is the current folder.
    """
    chain = [folder]
    while (above := os.path.dirname(chain[-1])) != chain[-1]:
        chain.append(above)
    marked = next(
        (n for n, place in enumerate(chain) if any(disk.exists(os.path.join(place, mark)) for mark in TOP_MARKS)), 0
    )
    package = next((n for n, place in enumerate(chain) if not disk.exists(os.path.join(place, "__init__.py"))), 0)
    current = chain.index(here) if here in chain[:-1] else 0  # not the root of the file system
    above_it = chain[: max(marked, package, current) + 1]
    sources = (os.path.join(place, "src") for place in above_it)
    return (*above_it, *(source for source in sources if source not in above_it and disk.is_dir(source)))
