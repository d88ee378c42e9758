"""The top folder of a project, as settings, ignored files and copies go by it; no program is decided by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.source.above import TOP_MARKS

if TYPE_CHECKING:
    from pathlib import Path


def is_top(folder: Path) -> bool:
    """Whether a folder is the top one of a project."""
    return any((folder / mark).exists() for mark in TOP_MARKS)


def top_above(folder: Path) -> Path:
    """The top folder of the project that a folder lies in; the folder itself where there is none."""
    return next((place for place in (folder, *folder.parents) if is_top(place)), folder)
