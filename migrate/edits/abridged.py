"""A file as libcst gets it: a name stands for each piece of it that no edit touches.

    class Net(nn.Module):            ->    class Net(nn.Module):
        def forward(self, x): ...              KEPT_0_
    print(f"{loss:.3f}")  # so far   ->    KEPT_1_  # so far

To read a piece, to see that libcst gives it back and to write it out again would cost most of what an edit costs, and
can only lose something. Headers, blank lines and comments between statements stay: what is new is laid out by them.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.edits.ends import NEWLINES
from migrate.source.address import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.edits.editable import EditableFile
    from migrate.edits.settle import Settled

MARK = b"KEPT_%d_"
MARKED = re.compile(rb"\bKEPT_(\d+)_\b")
SHORTEST = 10  # bytes: a name takes as long to read
_BOM = b"\xef\xbb\xbf"
_COOKIE = re.compile(rb"(?:[^\r\n]*(?:\r\n|\r|\n))?[^\r\n]*coding[:=]")
_ELIF = b"elif"


@dataclass(frozen=True, slots=True)
class Abridged:
    """The text, and what the names in it stand for."""

    text: bytes
    kept: tuple[bytes, ...] = ()

    def restored(self, edited: bytes) -> bytes:
        """The edited text with all that it left out."""
        return MARKED.sub(lambda mark: self.kept[int(mark[1])], edited) if self.kept else edited


def abridged(file: EditableFile, settled: Settled) -> Abridged:
    """The file without the insides of statements that nothing happens to.

    What is written deeper or less deep than before, and takes several lines, stays: libcst has to move its lines.
    """
    content = file.content
    if MARKED.search(content) or content.startswith(_BOM) or _COOKIE.match(content):  # columns are those of UTF-8
        return Abridged(content)
    spans = _Spans(file, settled)
    text: list[bytes] = []
    kept: list[bytes] = []
    done = 0
    for start, end in spans.found():
        text += content[done:start], MARK % len(kept)
        kept.append(content[start:end])
        done = end
    text.append(content[done:])
    return Abridged(b"".join(text), tuple(kept))


class _Spans:
    """Where what no edit touches begins and ends."""

    def __init__(self, file: EditableFile, settled: Settled) -> None:
        self._content = file.content
        self._index = file.index
        self._lines = [0, *(end.end() for end in NEWLINES.finditer(file.content))]
        self._busy = sorted(settled.busy)
        end = self._index.end
        self._moved = [range(number, end[number]) for number in settled.statements]
        self._moved += [range(n, end[wrap.last]) for n, wraps in settled.wraps.items() for wrap in wraps]

    def found(self) -> Iterator[tuple[int, int]]:
        """The first byte of each piece, and the one behind its last, in order."""
        number = 0
        while number < len(self._index.statements):
            past = self._index.end[number]
            if bisect_left(self._busy, number) != bisect_left(self._busy, past):
                number += 1  # what stands in it comes next
                continue
            stmt = self._index.statements[number]
            if not any(number in part for part in self._moved):
                yield from self._inside(stmt)
                number = past
                continue
            if not any(blocks(stmt)):
                yield from (span for span in self._inside(stmt) if len(self._content[slice(*span)].splitlines()) == 1)
            number += 1

    def _inside(self, stmt: ast.stmt) -> Iterator[tuple[int, int]]:
        """Of a statement that holds others, its blocks; another one as a whole."""
        inner = list(blocks(stmt))
        for block in inner or ([stmt],):
            start, end = self._start(block[0]), self._place(block[-1].end_lineno, block[-1].end_col_offset)
            if inner and self._content.startswith(_ELIF, start) and isinstance(block[0], ast.If):
                yield from self._inside(block[0])
            elif end - start > SHORTEST:
                yield start, end

    def _start(self, stmt: ast.stmt) -> int:
        decorators: Sequence[ast.expr] = getattr(stmt, "decorator_list", ())
        return self._place(decorators[0].lineno if decorators else stmt.lineno, stmt.col_offset)

    def _place(self, line: int | None, column: int | None) -> int:
        assert line is not None
        assert column is not None
        return self._lines[line - 1] + column
