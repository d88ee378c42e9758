"""Globs over paths, as `.gitignore` and ruff have them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

#: What a pattern's pieces match; the longer piece comes first.
_PIECES = (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]"))
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]]*\]|.", re.DOTALL)


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
            _compiled(glob)

    @cached_property
    def _compiled(self) -> tuple[tuple[re.Pattern[str], bool], ...]:
        return tuple((_compiled(glob), "/" in glob.rstrip("/")) for glob in self.globs)

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


def _compiled(glob: str) -> re.Pattern[str]:
    try:
        return re.compile(_regex(glob), re.DOTALL)
    except re.error as error:
        way_out = "Write what stands in brackets as in [abc], [a-z] or [!0-9]."
        raise UsageError(f"{glob!r} is no pattern: {error.msg}", way_out) from error


def _regex(glob: str) -> str:
    known = dict(_PIECES)
    tokens = _TOKEN.findall(glob.removeprefix("./").lstrip("/").rstrip("/"))
    return "".join(known.get(token) or _other(token) for token in tokens)


def _other(token: str) -> str:
    if token.startswith("[") and token not in ("[", "[]", "[!]"):
        inside = token[1:-1].replace("\\", "\\\\")
        return f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(token)
