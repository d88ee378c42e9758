"""Colours of code: which characters of a line are a keyword, a string, a comment, a number, a name that is defined."""

from __future__ import annotations

import io
import keyword
import tokenize
from itertools import pairwise
from typing import TYPE_CHECKING

from migrate.report.html.markup import Markup, join, tag, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KEYWORD, STRING, COMMENT, NUMBER, DEFINED = "k", "s", "c", "n", "d"
MARK = "m"  # what differs
_OF_TYPE = {tokenize.STRING: STRING, tokenize.COMMENT: COMMENT, tokenize.NUMBER: NUMBER}

Coloured = tuple[int, int, str]  # half-open range of characters, class


def coloured(lines: Sequence[str]) -> list[list[Coloured]]:
    """The ranges of each line, in order; where the text is no Python, as far as it is."""
    found: list[list[Coloured]] = [[] for _ in lines]
    source = io.StringIO("".join(f"{line}\n" for line in lines))
    try:
        for token, name in _named(tokenize.generate_tokens(source.readline)):
            for row in range(token.start[0], min(token.end[0], len(lines)) + 1):
                start = token.start[1] if row == token.start[0] else 0
                end = token.end[1] if row == token.end[0] else len(lines[row - 1])
                if end > start:
                    found[row - 1].append((start, end, name))
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def _named(tokens: Iterator[tokenize.TokenInfo]) -> Iterator[tuple[tokenize.TokenInfo, str]]:
    before = ""
    for token in tokens:
        if token.type == tokenize.NAME:
            if keyword.iskeyword(token.string):
                yield token, KEYWORD
            elif before in ("def", "class"):
                yield token, DEFINED
        elif token.type in _OF_TYPE:
            yield token, _OF_TYPE[token.type]
        elif tokenize.tok_name[token.type].startswith(("FSTRING", "TSTRING")):
            yield token, STRING
        before = token.string


def painted(line: str, colours: Sequence[Coloured], marks: Sequence[tuple[int, int]] = (), mark: str = "ins") -> Markup:
    """A line with its colours, and with what differs in an element `mark`."""
    cuts = {0, len(line), *(place for start, end, _ in colours for place in (start, end))}
    cuts |= {place for start, end in marks for place in (start, end)}
    places = sorted(place for place in cuts if place <= len(line))
    parts: list[Markup] = []
    run: list[Markup] = []  # inside of the mark
    for start, end in pairwise(places):
        kind = next((name for first, last, name in colours if first <= start < last), "")
        piece = tag("span", text(line[start:end]), class_=kind) if kind else text(line[start:end])
        if any(first <= start < last for first, last in marks):
            run.append(piece)
        else:
            parts += [tag(mark, *run)] if run else []
            run = []
            parts.append(piece)
    parts += [tag(mark, *run)] if run else []
    return join(parts)
