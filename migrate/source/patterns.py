"""Globs over the paths below a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.source.globs import compiled

if TYPE_CHECKING:
    import re
    from pathlib import Path


@dataclass(frozen=True, eq=False)
class Patterns:
    """Globs that are relative to a folder.

    One without a slash matches the name of a file or folder at any depth; one with a slash the path from the folder on.
    What lies below a folder that matches, matches.

    Raises:
        UsageError: a glob means nothing, such as one with the range [z-a].
    """

    folder: Path  # absolute, without links
    globs: tuple[str, ...]

    def __post_init__(self) -> None:
        for glob in self.globs:
            compiled(glob)

    @cached_property
    def _compiled(self) -> tuple[tuple[re.Pattern[str], bool], ...]:
        return tuple((compiled(glob), "/" in glob.rstrip("/")) for glob in self.globs)

    def match(self, real: Path) -> bool:
        """Whether an absolute path without links matches one of the globs."""
        if not self.globs:
            return False
        parts = os.path.relpath(real, self.folder).split(os.sep)
        heads = ["/".join(parts[: end + 1]) for end in range(len(parts))]
        return any(
            any(pattern.fullmatch(text) for text in (heads if is_path else parts))
            for pattern, is_path in self._compiled
        )
