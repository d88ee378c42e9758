"""F-strings that every Python reads.

From 3.12 on an f-string may hold its own quotes, and `ast.unparse` (of 3.12.1 and 3.13.0, at least) writes them so
where nobody asked for it: `f'{a['b']}'`. What is written into a program is read by the Python that runs the program,
and must not depend on the one that runs us.
"""

from __future__ import annotations

import io
import re
import tokenize
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.edits.edit import Operation

_START = getattr(tokenize, "FSTRING_START", None)  # Pythons before 3.12 have none
_END = getattr(tokenize, "FSTRING_END", None)
_QUOTES = ("'", '"', '"""', "'''")  # in the order in which `ast.unparse` tries them
_CAN_BE = re.compile(r"[fF][rR]?['\"].*\{", re.DOTALL)


def for_every_python(operation: Operation) -> Operation:
    """The operation with f-strings in its code that Pythons before 3.12 read as well."""
    if _START is None:
        return operation
    changed: dict[str, object] = {}
    for field in fields(operation):  # type: ignore[arg-type]
        value = getattr(operation, field.name)
        if isinstance(value, str):
            changed[field.name] = requoted(value)
        elif field.name == "parts":
            changed["parts"] = tuple((n, requoted(part) if isinstance(part, str) else part) for n, part in value)
    return replace(operation, **changed)  # type: ignore[type-var]


def requoted(code: str) -> str:
    """The code, in which an f-string that holds its own quotes has others, where some will do."""
    if not _CAN_BE.search(code):
        return code
    while (found := _first(code)) is not None:
        start, end, old, new = found
        code = f"{code[:start]}{new}{code[start + len(old) : end - len(old)]}{new}{code[end:]}"
    return code


def _first(code: str) -> tuple[int, int, str, str] | None:
    """The innermost first: where the quotes of such an f-string begin and end, what they are and what they may be."""
    starts: list[tokenize.TokenInfo] = []
    lines = code.splitlines(keepends=True)
    for token in _tokens(code):
        if token.type == _START:
            starts.append(token)
        elif token.type == _END:
            start, end = _offset(lines, *starts.pop().end), _offset(lines, *token.end)
            old = token.string
            inside = code[start : end - len(old)]
            if old in re.sub(r"\\.", "", inside) and (new := _fitting(inside)):
                return start - len(old), end, old, new
    return None


def _fitting(inside: str) -> str:
    """The quotes that an f-string with this text may have; empty if there are none."""
    fitting = [quotes for quotes in _QUOTES if quotes not in inside and (len(quotes) > 1 or "\n" not in inside)]
    return next((quotes for quotes in fitting if quotes[0] != inside[-1]), "")


def _offset(lines: list[str], row: int, column: int) -> int:
    return sum(map(len, lines[: row - 1])) + column


def _tokens(code: str) -> list[tokenize.TokenInfo]:
    """The tokens of what may be several lines of an expression; none if they cannot be told."""
    found: list[tokenize.TokenInfo] = []
    with suppress(tokenize.TokenError, SyntaxError):
        found.extend(tokenize.generate_tokens(io.StringIO(code).readline))
    return found
