"""Bytes to a tree, or to one line that says why not.

The parser gets the bytes: encoding cookies and byte order marks are its business. Everything that may go wrong costs
this file only, because a file that would exhaust the stack of a later stage is refused here.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from itertools import accumulate
from typing import TYPE_CHECKING

from migrate.errors import SourceError
from migrate.source.memory import uncollected

if TYPE_CHECKING:
    from collections.abc import Iterator

# Levels of the syntax tree. Later stages take up to ten Python frames a level; libcst's parser, which would end the
# process when it runs out of stack, was run on 3,000 levels without trouble.
# Python 3.12.0 and 3.12.1 count calls that go through C by themselves, and end them at 1,500 (3.12.2: 10,000).
DEEPEST = 200 if (3, 12) <= sys.version_info < (3, 12, 2) else 1000

# What Python 2 wrote and Python 3 does not read: what to call it, how a line shows it (compiled where a file is wrong).
PYTHON_2 = (
    ("print statement", rb"""^\s*(?:.*[:;])?\s*print(?:\s*["'`]|\s+[\w{~])"""),
    ("exec statement", rb"""^\s*(?:.*[:;])?\s*exec\s+["'\w]"""),
    ("`except Error, name`", rb"^\s*except\s[^:#]*,\s*[a-z_]\w*\s*:"),
    ("`raise Error, message`", rb"^\s*(?:.*[:;])?\s*raise\s+[\w.]+\s*,"),
    ("the operator <>", rb"<>"),
    ("backquotes", rb"`"),
    ("a number like 0777 or 10L", rb"(?<![\w.])(?:0\d+|\d+[lL]|0[xX][\da-fA-F]+[lL])(?![\w.])"),
    ("a ur'' string", rb"""(?<!\w)[uU][rR]["']"""),
    ("a parameter that unpacks a tuple", rb"^\s*def\s+\w+\s*\((?:[^)=]*,)?\s*\("),
)
# What some Python was the first to read: which, what to call it, how a line shows it; the newest first.
NEWER = (
    ((3, 14), "`except` with several classes and no parentheses", rb"^\s*except\b[^:#(]*,\s*[\w.]*\b[A-Z]\w*\s*:"),
    ((3, 14), "a t-string", rb"""(?<![\w"'])(?:[tT][rR]?|[rR][tT])(?=["'])"""),
    ((3, 13), "a type parameter with a default", rb"^\s*(?:(?:async\s+)?def|class|type)\s+\w+\s*\[[^\]]*="),
    ((3, 12), "a `type` statement", rb"^\s*type\s+\w+\s*(?:\[.*\]\s*)?="),
    ((3, 12), "type parameters", rb"^\s*(?:(?:async\s+)?def|class)\s+\w+\s*\["),
    ((3, 11), "`except*`", rb"^\s*except\s*\*"),
    ((3, 11), "a star in an index", rb"[\w\])]\[(?:[^\[\]]*,)?\s*\*"),
    ((3, 11), "a star in an annotation", rb"\*\s*\w+\s*:\s*\*"),
)
# What Python 3.12 was the first to read between the braces of an f-string, which others end at the first quote or line.
_TO_THE_BRACE = rb"""(?<![\w"'])(?:[fF][rR]?|[rR][fF])(["'])(?:(?!\1)[^{]|\{\{)*\{(?:(?!\1)[^}])*"""
NEWER_F_STRINGS = (
    ("an f-string that holds its own quotes", _TO_THE_BRACE + rb"\1.*\}"),
    ("an f-string with a line break between its braces", _TO_THE_BRACE + rb"$"),
)
# What a notebook that was saved as a script still holds: `%matplotlib inline`, `!pip install torch`.
IPYTHON = rb"\s*(?P<name>(?:%{1,2}|!)[A-Za-z]\w*)"
# What PyTorch took until Python 3.7 made a keyword of it: `x.cuda(async=True)`.
ASYNC = rb"(?<![\w.])async\s*=(?!=)"


STRINGS = rb"""(["'])(?:\\.|(?!\1).)*\1"""  # what stands in them says nothing about the language


def parse(content: bytes, path: str) -> ast.Module:
    """The syntax tree of a file's bytes.

    Raises:
        SourceError: with the line and the way out.
    """
    if b"\0" in content:
        raise _binary(content, path)
    if not content.isascii() and (undecodable := _undecodable(content, path)):
        raise undecodable  # `ast` reads such a comment, Python itself and libcst do not
    try:
        with warnings.catch_warnings(), uncollected():
            warnings.simplefilter("ignore")  # SyntaxWarning: about the user's file, and Python says it when it runs
            tree = ast.parse(content, path)
    except SyntaxError as error:
        raise _unparsable(error, content, path) from error
    except (RecursionError, MemoryError) as error:  # what the parser says when its own stack is used up
        raise _too_deep(path, 0) from error
    except ValueError as error:
        raise SourceError(f"this is not Python source: {error}", "Exclude the file.", path=path) from error
    if line := _line_beyond(tree, content):
        raise _too_deep(path, line)
    return tree


def _line_beyond(tree: ast.Module, content: bytes) -> int:
    """The line of something that lies deeper than we go; 0 if nothing does."""
    if content.count(b"elif") < _SHALLOW and not any(map(_is_deep, _long_statements(tree, content))):
        return 0
    return _line_at(tree, DEEPEST)


# A level of an expression takes a byte at least, and blocks nest up to 100 deep (a limit of Python's own tokenizer), at
# two nodes a block: only statements of more bytes than this, or a hundred `elif`, can be too deep. Looking at every
# node would take longer than parsing.
_SHALLOW = 100
_LONG = DEEPEST - 3 * _SHALLOW


def _long_statements(tree: ast.Module, content: bytes) -> Iterator[ast.AST]:
    """The statements that have room for an expression that is too deep; of blocks, what stands before their body."""
    ends = [0, *accumulate(map(len, content.splitlines(keepends=True)))]
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        body = getattr(node, "body", None)
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if isinstance(body, list):
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                waiting.extend(getattr(node, name, ()))
            first = min([first, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
            last = body[0].lineno
        if last >= len(ends) or ends[last] - ends[max(first - 1, 0)] > _LONG:
            yield node


def _is_deep(statement: ast.AST) -> bool:
    return _line_at(statement, _LONG) > 0


def _line_at(root: ast.AST, depth: int) -> int:
    """The line of a node that many levels below the root; 0 if there is none."""
    level: list[ast.AST] = [root]
    line = getattr(root, "lineno", 1)
    for _ in range(depth):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return 0
        line = next((node.lineno for node in level if hasattr(node, "lineno")), line)
    return line


def _too_deep(path: str, line: int) -> SourceError:
    what = f"an expression or a chain of `elif` has more than {DEEPEST} levels"
    return SourceError(what, "Split it into several statements.", path=path, line=line)


def _binary(content: bytes, path: str) -> SourceError:
    line = content.count(b"\n", 0, content.index(b"\0")) + 1
    if content[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return SourceError(
            "this is UTF-16, and Python reads UTF-8 unless a cookie says otherwise",
            "Save it as UTF-8.",
            path=path,
            line=1,
        )
    return SourceError("there is a NUL byte, so this is not Python source", "Exclude the file.", path=path, line=line)


def _unparsable(error: SyntaxError, content: bytes, path: str) -> SourceError:
    """Which of these: an unknown or wrong encoding, IPython, Python 2, or a plain syntax error."""
    if undecodable := _undecodable(content, path):
        return undecodable
    line = error.lineno or 1
    if command := re.match(IPYTHON, _line(content, line)):
        what = f"syntax error: {command['name'].decode()} is a command of IPython"
        return SourceError(what, "Take the line out, or name the notebook itself.", path=path, line=line)
    if sign := _python_2(content, line):
        what = f"looks like Python 2 ({sign} at line {line})"
        return SourceError(what, "Convert it with 2to3 first.", path=path, line=line)
    if re.search(ASYNC, _without_strings(content, line)):
        what = "syntax error: `async` is a keyword since Python 3.7"
        return SourceError(what, "PyTorch's argument is called non_blocking now.", path=path, line=line)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if newer := _newer(error, content, line):
        first, sign = newer
        what = f"looks like Python {first} ({sign} at line {line})"
        return SourceError(what, f"Run migrate with Python {first} or newer (this is {version}).", path=path, line=line)
    way_out = f"Mend it; if newer syntax is meant, run migrate with that Python (this is {version})."
    if "too many nested parentheses" in error.msg or "too many levels of indentation" in error.msg:
        way_out = "Python itself does not read this: split it."
    return SourceError(f"syntax error: {error.msg}", way_out, path=path, line=line)


def _undecodable(content: bytes, path: str) -> SourceError | None:
    import tokenize  # most files are ASCII, and a hook does not wait for it

    lines = iter(content.splitlines(keepends=True))
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(lines, b""))
    except SyntaxError as error:
        if not error.msg.startswith("invalid or missing"):
            what = f"the encoding is not known: {error.msg}"
            return SourceError(what, "Correct the coding comment in the first two lines.", path=path, line=1)
        encoding = "utf-8"  # they name none, and are not that
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{content[error.start]:02x} is not {error.encoding}"
        way_out = "Save the file as UTF-8, or name its encoding in the first line: # -*- coding: latin-1 -*-"
        return SourceError(what, way_out, path=path, line=line)
    return None


def _python_2(content: bytes, line: int) -> str:
    """What on this line is Python 2; empty if nothing is."""
    text = _without_strings(content, line)
    return next((sign for sign, pattern in PYTHON_2 if re.search(pattern, text)), "")


def _newer(error: SyntaxError, content: bytes, line: int) -> tuple[str, str] | None:
    """The Python newer than this one that was the first to read what is on this line, and what that is."""
    text = _without_strings(content, line)
    found = [(python, sign) for python, sign, pattern in NEWER if re.search(pattern, text)]
    found += [((3, 12), sign) for sign, pattern in NEWER_F_STRINGS if re.search(pattern, _line(content, line))]
    if "f-string expression part cannot include" in error.msg:
        found.append(((3, 12), "a backslash or a comment between the braces of an f-string"))
    newer = ((".".join(map(str, python)), sign) for python, sign in found if python > sys.version_info)
    return next(newer, None)


def _without_strings(content: bytes, line: int) -> bytes:
    return re.sub(STRINGS, rb"\1\1", _line(content, line))


def _line(content: bytes, number: int) -> bytes:
    lines = content.splitlines()
    return lines[number - 1] if number <= len(lines) else b""
