"""Lines of code, moved: in and out of blocks, whatever strings they hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import first_line, last_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INDENT = "    "


class Text:
    """The lines of a module and where its statements stand."""

    def __init__(self, content: str) -> None:
        self.lines = content.split("\n")
        self.tree = ast.parse(content)
        self._fixed = {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and (node.end_lineno or 0) > node.lineno
            for line in range(node.lineno + 1, (node.end_lineno or 0) + 1)
        }

    def of(self, first: int, last: int) -> list[str]:
        """The lines from one to another, both 1-based and included."""
        return self.lines[first - 1 : last]

    def indented(self, first: int, last: int) -> list[str]:
        """The same, one level deeper; what stands inside a string stays."""
        return [
            line if number in self._fixed or not line.strip() else INDENT + line
            for number, line in enumerate(self.of(first, last), first)
        ]

    def dedented(self, first: int, last: int, by: int) -> list[str]:
        """The same, so many columns further out."""
        return [
            line if number in self._fixed or line[:by].strip() else line[by:]
            for number, line in enumerate(self.of(first, last), first)
        ]

    def source(self, node: ast.stmt) -> str:
        """A statement as it is written."""
        return "\n".join(self.of(first_line(node), last_line(node)))


def replaced(lines: Sequence[str], changes: Iterable[tuple[int, int, list[str]]]) -> list[str]:
    """Lines in which some ranges (first, last, 1-based and included) are others."""
    made = list(lines)
    for first, last, new in sorted(changes, reverse=True):
        made[first - 1 : last] = new
    return made
