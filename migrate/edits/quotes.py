"""Quotes of what is written into a program: those of the program itself, in f-strings that every Python reads.

`loaders["train"]` is written with the quotes that the program writes "train" with, whatever `ast.unparse` has.

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
_PLAIN = re.compile(r"""(['"])([^'"\\\n]+)\1""")
_CAN_BE = re.compile(r"[fF][rR]?['\"].*\{", re.DOTALL)


def as_written(operation: Operation, content: bytes) -> Operation:
    """The operation with the quotes of a file in its code, and f-strings that Pythons before 3.12 read as well."""
    changed: dict[str, object] = {}
    for field in fields(operation):  # type: ignore[arg-type]
        value = getattr(operation, field.name)
        if isinstance(value, str):
            changed[field.name] = _written(value, content)
        elif field.name == "parts":
            parts = ((n, _written(part, content) if isinstance(part, str) else part) for n, part in value)
            changed["parts"] = tuple(parts)
    return replace(operation, **changed)  # type: ignore[type-var]


def _written(code: str, content: bytes) -> str:
    code = like(code, content)
    return code if _START is None else requoted(code)


def quoted(code: str, content: bytes) -> str:
    """The code with the quotes that a file uses most; code is written with single quotes."""
    return code.replace("'", '"') if content.count(b'"') > content.count(b"'") and '"' not in code else code


def like(code: str, content: bytes) -> str:
    """The code, in which a key that the file asks for in other quotes alone has those: `loaders['train']`."""
    if not _PLAIN.search(code):
        return code
    lines, depth, found = code.splitlines(keepends=True), 0, []
    for token in _tokens(code):
        depth += (token.type == _START) - (token.type == _END)
        if token.type == tokenize.STRING and depth == 0 and (plain := _PLAIN.fullmatch(token.string)):
            other = "'" if plain[1] == '"' else '"'
            new = f"{other}{plain[2]}{other}"
            start, is_key = _offset(lines, *token.start), f"[{token.string}]"
            if code[start - 1 : start + len(new) + 1] == is_key and is_key.encode() not in content:
                if f"[{new}]".encode() in content:
                    found.append((start, new))
    for start, new in found:
        code = f"{code[:start]}{new}{code[start + len(new) :]}"
    return code


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
