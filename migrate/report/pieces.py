"""A change as replacements of whole lines, for those who apply one at a time: reviewers, SARIF viewers, editors.

No piece only inserts or only deletes: it takes a neighbouring line in, so that "these lines become that text" means the
same to all of them (an empty text is an empty line to some, and no line to others). Only for a file of which nothing is
left is there no other way.
"""

from __future__ import annotations

import difflib
import io
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.report.diff import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.report.model import Change


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines `first` to `last` (1-based, both included) become `text`, which lacks the end of its last line."""

    first: int
    last: int
    text: str
    old: str  # what stands there now, likewise

    @property
    def end_column(self) -> int:
        """Behind the last character of the last line, 1-based, in characters."""
        return len(self.old.rpartition("\n")[2]) + 1


@dataclass(slots=True)
class _Run:
    """Half-open ranges of lines of both sides, 0-based."""

    start: int
    end: int
    new_start: int
    new_end: int


def pieces(change: Change) -> tuple[Piece, ...]:
    """The replacements that make the change, from the top to the bottom; no two overlap."""
    old, new = lines_of(change.old), lines_of(change.new)
    encoding = tokenize.detect_encoding(io.BytesIO(change.old).readline)[0].removesuffix("-sig")  # the mark is kept
    return tuple(
        Piece(run.start + 1, run.end, _text(new[run.new_start : run.new_end], encoding), _text(lines, encoding))
        for run in _runs(old, new)
        if (lines := old[run.start : run.end])
    )


def _runs(old: Sequence[bytes], new: Sequence[bytes]) -> Sequence[_Run]:
    made: list[_Run] = []
    codes = difflib.SequenceMatcher(None, old, new).get_opcodes()
    found = [_Run(*place) for tag, *place in codes if tag != "equal"]
    for number, run in enumerate(found):
        if made and _is_open(made[-1], old, new):
            made[-1].end, made[-1].new_end = run.end, run.new_end
        else:
            made.append(run)
        below = found[number + 1].start if number + 1 < len(found) else len(old)
        while _is_open(made[-1], old, new) and made[-1].end < below:
            made[-1].end, made[-1].new_end = made[-1].end + 1, made[-1].new_end + 1
    while made and _is_open(made[-1], old, new) and made[-1].start > 0:
        _take_in_above(made)
    return made


def _is_open(run: _Run, old: Sequence[bytes], new: Sequence[bytes]) -> bool:
    """Whether one side has no text, or the last lines end differently."""
    before, after = old[run.start : run.end], new[run.new_start : run.new_end]
    return not before or not b"".join(after).strip(b"\r\n") or _end(before[-1]) != _end(after[-1])


def _take_in_above(made: list[_Run]) -> None:
    """At the end of the file there is no line below: the last run takes one above, or the run that ends there."""
    last = made[-1]
    if len(made) > 1 and made[-2].end == last.start:
        made[-2].end, made[-2].new_end = last.end, last.new_end
        made.pop()
    else:
        last.start, last.new_start = last.start - 1, last.new_start - 1


def _text(lines: Sequence[bytes], encoding: str) -> str:
    text = b"".join(lines)
    return text.removesuffix(_end(text)).decode(encoding)


def _end(line: bytes) -> bytes:
    return next((end for end in (b"\r\n", b"\n") if line.endswith(end)), b"")
