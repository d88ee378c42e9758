"""Comments that speak to migrate: `# migrate: ignore[MIG001] why`, `# migrate: ignore`, `# migrate: skip-file`.

At the end of a statement's header the comment is for that statement; on a line of its own, for the one below. `ast`
does not see comments, so files that hold one are read token by token; all others are not.
"""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WORD = b"migrate:"
EVERY = ("",)  # begins each code
_IGNORE = re.compile(r"#\s*migrate:\s*ignore(?:\[([^\]]*)\])?(?![\w-])")
_SKIP = re.compile(r"#\s*migrate:\s*skip-file(?![\w-])")


def skips(content: bytes) -> bool:
    """Whether a file asks to be left alone."""
    return WORD in content and any(_SKIP.search(token.string) for token in _comments(content))


def ignores(content: bytes) -> Mapping[int, tuple[str, ...]]:
    """By line: what is not to be told of what stands there, as it is written: names, codes, beginnings of codes."""
    if WORD not in content:
        return {}
    found: dict[int, tuple[str, ...]] = {}
    start, codes, waiting = 0, (), ()  # type: int, tuple[str, ...], tuple[str, ...]
    for token in _tokens(content):
        if token.type == tokenize.COMMENT and (match := _IGNORE.search(token.string)):
            named = tuple(word.strip() for word in (match[1] or "").split(",") if word.strip())
            given = named if match[1] is not None else EVERY
            if start:
                codes += given
            else:
                waiting += given
        elif token.type == tokenize.NEWLINE:
            told = codes + waiting
            found.update(dict.fromkeys(range(start, token.end[0] + 1), told) if told else {})
            start, codes, waiting = 0, (), ()
        elif token.type not in _BLANK and not start:
            start = token.start[0]
    return found


_BLANK = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})


def _comments(content: bytes) -> Iterator[tokenize.TokenInfo]:
    return (token for token in _tokens(content) if token.type == tokenize.COMMENT)


def _tokens(content: bytes) -> Iterator[tokenize.TokenInfo]:
    """The tokens, as far as there are some: what is wrong with a file is said by the parser."""
    try:
        yield from tokenize.tokenize(io.BytesIO(content).readline)
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return
