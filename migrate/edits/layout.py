"""Blank lines and comments in the gap between two statements, when some go away and others come.

A gap is a list of lines (blank, or a comment), `GONE` marks where a statement was, and `New` statements. What the lines
are made of is the caller's business, so this is arithmetic and nothing else.

* Without anything new: what remains of blank lines on both sides of removed statements is the larger side; nothing at
  the beginning and at the end of a block.
* A new statement that is not `spaced` stands where it was put: before a statement it takes the blank lines and leaves
  the comments below it; after a statement it follows directly.
* A `spaced` one has at least one blank line on each side, one if it can be behind it, and before it the rest of what
  was there; definitions at the top of a file keep two lines of distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

L = TypeVar("L")  # a line
S = TypeVar("S")  # a statement


class Mark(Enum):
    """What a gap may hold besides lines."""

    GONE = "a statement was here"


@dataclass(frozen=True, slots=True)
class New(Generic[S]):
    """Statements that come."""

    statements: tuple[S, ...]
    is_before: bool  # asked for before the statement that follows, not after the one that precedes
    spaced: bool


@dataclass(frozen=True, slots=True)
class Gap(Generic[L, S]):
    """What lies between two statements of a block, and where that is."""

    tokens: Sequence[L | Mark | New[S]]
    is_first: bool = False  # nothing before it in the block
    is_last: bool = False  # nothing after it in the block
    after_definition: bool = False  # at the top of the file
    before_definition: bool = False  # likewise


@dataclass(frozen=True, slots=True)
class Layout(Generic[L, S]):
    """How gaps are laid out, given what a blank line is."""

    is_blank: Callable[[L], bool]
    blank: Callable[[], L]

    def arrange(self, gap: Gap[L, S]) -> list[L | New[S]]:
        """The lines and statements of the gap, in order."""
        segments: list[list[L | Mark]] = [[]]
        news: list[New[S]] = []
        for token in gap.tokens:
            if isinstance(token, New):
                news.append(token)
                segments.append([])
            else:
                segments[-1].append(token)
        head: list[L | New[S]] = []
        tail: list[L | New[S]] = []
        while news and not news[0].spaced and not news[0].is_before and not segments[0]:
            head.append(news.pop(0))  # directly below the statement before
            segments.pop(0)
        while news and not news[-1].spaced and news[-1].is_before and Mark.GONE not in segments[-1]:
            tail[:0] = [
                news.pop(),
                *self._lines(segments.pop()),
            ]  # directly above the statement behind, and its comments
        first, last = gap.is_first and not head, gap.is_last and not tail
        if any(new.spaced for new in news):
            definition = gap.before_definition and not tail, gap.after_definition and not head
            middle = self._spaced(segments, news, (first, last), definition)
        else:
            middle = self._plain(segments, news, (first, last))
        return [*head, *middle, *tail]

    def _sides(self, front: list[L | Mark], head: list[L | Mark]) -> tuple[int, int] | None:
        """The blank lines on both sides of what gives way to a new statement, where the first side is not smaller."""
        if Mark.GONE not in front or Mark.GONE in head:
            return None
        before, behind = front.index(Mark.GONE), len(head)
        return (before, behind) if before >= behind > 0 else None

    def _plain(self, segments: list[list[L | Mark]], news: list[New[S]], ends: tuple[bool, bool]) -> list[L | New[S]]:
        out: list[L | New[S]] = []
        for number, segment in enumerate(segments):
            is_end = number == len(news)
            out.extend(self._collapsed(segment, (ends[0] and number == 0, ends[1] and is_end)))
            out.extend([] if is_end else [news[number]])
        return out

    def _spaced(
        self,
        segments: list[list[L | Mark]],
        news: list[New[S]],
        ends: tuple[bool, bool],
        definition: tuple[bool, bool],
    ) -> list[L | New[S]]:
        front, inner, (head, rest) = segments[0], segments[1:-1], self._split(segments[-1])
        is_last = ends[1] and not rest
        before_wish = 2 if definition[1] else 1
        after_wish = 2 if definition[0] else 1
        if any(self._is_comment(token) for token in front):  # the comments go with what is new
            above = self._at_least(self._collapsed(front, (ends[0], False)), 0 if ends[0] else 1)
            below = max(self._height(head, (False, is_last)), 0 if is_last else 1)
        else:
            total, most = self._budget([*front, *(t for part in inner for t in part), *head])
            after = self._height(head, (False, True)) if is_last else min(after_wish, max(total, 1))
            before = max(min(before_wish, max(total, 1)), min(total - after, most))
            if kept := self._sides(front, head):  # in the place of what goes, both sides keep their distance
                before, after = kept
            above = self._blanks(self._height(front, (True, False)) if ends[0] else before)
            below = after
        out: list[L | New[S]] = [*above, news[0]]
        for segment, one, other in zip(inner, news, news[1:], strict=False):
            out.extend(self._at_least(self._collapsed(segment, (False, False)), int(one.spaced or other.spaced)))
            out.append(other)
        return [*out, *self._blanks(below), *self._collapsed(rest, (False, ends[1]))]

    def _budget(self, tokens: Sequence[L | Mark]) -> tuple[int, int]:
        """Blank lines to share out, and the most that may stand together."""
        blanks = [token for token in tokens if token is not Mark.GONE and not self._is_comment(token)]
        if Mark.GONE not in tokens:
            return len(blanks), len(blanks)
        runs = self._runs(tokens)
        sides = len(runs[0]), len(runs[-1])
        return sum(sides), max(sides)

    def _collapsed(self, segment: Sequence[L | Mark], ends: tuple[bool, bool]) -> list[L]:
        """The lines of a segment, without the blank lines that lose their reason with what is gone."""
        out: list[L] = []
        stretch: list[L | Mark] = []
        is_start = ends[0]
        for token in segment:
            if self._is_comment(token):
                out.extend(self._stretch(stretch, (is_start, False)))
                out.extend(self._lines([token]))
                stretch, is_start = [], False
            else:
                stretch.append(token)
        return [*out, *self._stretch(stretch, (is_start, ends[1]))]

    def _stretch(self, tokens: Sequence[L | Mark], ends: tuple[bool, bool]) -> list[L]:
        runs = self._runs(tokens)
        if len(runs) == 1:
            return runs[0]
        if ends[0]:
            return runs[0]
        return [] if ends[1] else max(runs, key=len)

    def _runs(self, tokens: Iterable[L | Mark]) -> list[list[L]]:
        runs: list[list[L]] = [[]]
        for token in tokens:
            if isinstance(token, Mark):
                runs.append([])
            else:
                runs[-1].append(token)
        return runs

    def _split(self, segment: list[L | Mark]) -> tuple[list[L | Mark], list[L | Mark]]:
        """The blank lines (and marks) in front, and the rest."""
        past = next((n for n, token in enumerate(segment) if self._is_comment(token)), len(segment))
        return segment[:past], segment[past:]

    def _height(self, tokens: Sequence[L | Mark], ends: tuple[bool, bool]) -> int:
        return len(self._collapsed(tokens, ends))

    def _at_least(self, lines: list[L], blanks: int) -> list[L]:
        leading = next((n for n, line in enumerate(lines) if not self.is_blank(line)), len(lines))
        return [*self._blanks(blanks - leading), *lines]

    def _blanks(self, number: int) -> list[L]:
        return [self.blank() for _ in range(number)]

    def _is_comment(self, token: L | Mark) -> bool:
        return not isinstance(token, Mark) and not self.is_blank(token)

    def _lines(self, tokens: Iterable[L | Mark]) -> list[L]:
        return [token for token in tokens if not isinstance(token, Mark)]
