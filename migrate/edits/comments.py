"""The comments of a file, and which of them an edit lost."""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass

ENDS = re.compile(rb"\r\n|\r|\n")


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
    if not _tails(before) - _tails(after):  # every line is still there from its first # on: no need to look closer
        return []
    remaining = Counter(comment.text for comment in comments(after))
    found = []
    for comment in comments(before):
        if remaining[comment.text]:
            remaining[comment.text] -= 1
        else:
            found.append(comment)
    return found


def _tails(source: bytes) -> Counter[bytes]:
    return Counter(line[line.index(b"#") :] for line in ENDS.split(source) if b"#" in line)
