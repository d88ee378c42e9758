"""Which lines of a change stand side by side, and what of them differs."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WORDS = re.compile(r"\w+|\s+|.")
ALIKE = 0.5  # of 1: below this two lines are no versions of one line
MOST = 900  # pairs of lines that are compared; larger blocks are paired from the top down
MOST_CHARACTERS = 400  # of two lines that are compared word by word

Pair = tuple[int | None, int | None]
Span = tuple[int, int]


def pairs(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    """Rows of a block: numbers of the lines of both sides, None where a side has none. Both orders are kept."""
    if not old or not new:
        return [*((number, None) for number in range(len(old))), *((None, number) for number in range(len(new)))]
    if len(old) * len(new) > MOST:
        longest = max(len(old), len(new))
        return [(n if n < len(old) else None, n if n < len(new) else None) for n in range(longest)]
    return _closed(_aligned(old, new, _likeness(old, new)))


def _closed(rows: Iterable[Pair]) -> list[Pair]:
    """The same, with lines that have no pair side by side where some of both sides meet."""
    made: list[Pair] = []
    left: list[int] = []
    right: list[int] = []
    for i, j in (*rows, (0, 0)):
        if i is None or j is None:
            left += [i] if i is not None else []
            right += [j] if j is not None else []
        else:
            made += zip_longest(left, right)
            left, right = [], []
            made.append((i, j))
    return made[:-1]


def _likeness(old: Sequence[str], new: Sequence[str]) -> list[list[float]]:
    return [[_ratio(one.strip(), other.strip()) for other in new] for one in old]


def _ratio(one: str, other: str) -> float:
    if one == other:
        return 1.0
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return found if matcher.real_quick_ratio() >= ALIKE and (found := matcher.ratio()) >= ALIKE else 0.0


def _aligned(old: Sequence[str], new: Sequence[str], likeness: list[list[float]]) -> Iterator[Pair]:
    """The pairs with the greatest likeness in all; what has no pair stands alone."""
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            joined = best[i + 1][j + 1] + likeness[i][j] if likeness[i][j] else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], joined)
    i = j = 0
    while i < len(old) and j < len(new):
        if likeness[i][j] and best[i][j] == best[i + 1][j + 1] + likeness[i][j]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            yield i, None
            i += 1
        else:
            yield None, j
            j += 1
    yield from ((number, None) for number in range(i, len(old)))
    yield from ((None, number) for number in range(j, len(new)))


def differing(old: str, new: str) -> tuple[list[Span], list[Span]]:
    """What of two versions of a line differs, as half-open ranges of characters; nothing where that is most of it."""
    if max(len(old), len(new)) > MOST_CHARACTERS:
        return [], []
    before, after = WORDS.findall(old), WORDS.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < ALIKE / 2:
        return [], []
    left: list[Span] = []
    right: list[Span] = []
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind != "equal":
            left += _span(before, i, i_end)
            right += _span(after, j, j_end)
    return left, right


def _span(words: Sequence[str], start: int, end: int) -> list[Span]:
    first = sum(map(len, words[:start]))
    return [(first, first + sum(map(len, words[start:end])))] if end > start else []
