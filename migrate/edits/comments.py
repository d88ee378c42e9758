"""The comments of a file, and which of them an edit lost."""

from __future__ import annotations

import io
import tokenize
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

from migrate.edits.ends import NEWLINES


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment and its place."""

    line: int  # 1-based
    text: str  # from the # on

    def __str__(self) -> str:
        return f"{self.line}: {self.text}"


def comments(source: bytes) -> list[Comment]:
    """Every comment, in order.

    Raises:
        SyntaxError, tokenize.TokenError: it is not Python.
    """
    tokens = tokenize.tokenize(io.BytesIO(source).readline)
    return [Comment(t.start[0], t.string.rstrip()) for t in tokens if t.type == tokenize.COMMENT]


def lost(before: bytes, after: bytes) -> list[Comment]:
    """The comments of `before` that are not in `after`; one that is there twice must be there twice."""
    if are_kept(before, after):
        return []
    olds, news = comments(before), comments(after)
    texts, others = [old.text for old in olds], [new.text for new in news]
    missing = Counter(texts) - Counter(others)
    matches = SequenceMatcher(None, texts, others, autojunk=False).get_matching_blocks()
    matched = {n for block in matches for n in range(block.a, block.a + block.size)}
    found: list[Comment] = []
    for number in sorted(range(len(olds)), key=lambda n: n in matched):  # of equal ones, the one that has no match
        if missing[texts[number]]:
            missing[texts[number]] -= 1
            found.append(olds[number])
    return sorted(found, key=lambda comment: comment.line)


def are_kept(before: bytes, after: bytes) -> bool:
    """Whether every line is still there from its first # on, and so every comment: no need to look closer."""
    return not _tails(before) - _tails(after)


def _tails(source: bytes) -> Counter[bytes]:
    return Counter(line[line.index(b"#") :] for line in NEWLINES.split(source) if b"#" in line)
