"""What moves from the notebook's own process into functions goes away where it stood, with blank lines beside it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import first_line, last_line
from migrate.launching.refusal import NotStarted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from migrate.launching.view import View

Change = tuple[int, int, list[str]]


def removed(view: View, nodes: Sequence[ast.stmt], way_out: str) -> list[Change]:
    """The changes that take statements away, in order; a device that is asked for is chosen as it was before.

    Raises:
        NotStarted: one of them shares its line with another.
    """
    for node in nodes:
        if view.shares_a_line(node):
            raise NotStarted("two statements share a line", way_out, cell=view.cells[node])
    kept = {node: lines for node in nodes if (lines := view.kept_device(node))}
    changes = [(first_line(node), last_line(node), lines) for node, lines in kept.items()]
    return changes + [_gone(view, *one) for one in _groups(view, [node for node in nodes if node not in kept])]


def _groups(view: View, nodes: Iterable[ast.stmt]) -> list[tuple[int, int]]:
    """The first and the last line of statements with nothing but blank lines between them."""
    found: list[tuple[int, int]] = []
    for node in nodes:
        first = first_line(node)
        if found and not any(line.strip() for line in view.text.of(found[-1][1] + 1, first - 1)):
            first = found.pop()[0]
        found.append((first, last_line(node)))
    return found


def _gone(view: View, first: int, last: int) -> Change:
    """Without one of the blank lines around it; without any, where the lines around it were neighbours before."""
    lines = view.text.lines
    above, below = first - 1, last + 1  # 1-based, of the nearest lines with text
    while above > 0 and not lines[above - 1].strip():
        above -= 1
    while below <= len(lines) and not lines[below - 1].strip():
        below += 1
    if above > 0 and below <= len(lines) and (lines[above - 1], lines[below - 1]) in view.neighbours:
        return above + 1, below - 1, []
    is_blank = not lines[first - 2].strip() and not (lines[last : last + 1] or ["x"])[0].strip()
    return first, last + is_blank, []
