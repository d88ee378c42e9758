"""A unified diff that `git apply` and `patch -p1` accept, for any bytes and any name.

Bytes, because a diff of text would re-encode the file; split at line feeds only, because those are the lines of both
programs (a form feed or a lone carriage return is part of a line).
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.report.model import Change

CONTEXT = 3
# As git quotes names: what would end or hide a name in the header line.
QUOTED = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\a": "\\a",
    "\b": "\\b",
    "\v": "\\v",
    "\f": "\\f",
}
COLOURS = ((b"--- ", b"1"), (b"+++ ", b"1"), (b"@@", b"36"), (b"-", b"31"), (b"+", b"32"))


def diff(changes: Iterable[Change]) -> bytes:
    """The diff of all changes, in order, with names relative to the top of the repository, or to this folder."""
    return b"".join(unified(change.old, change.new, name_of(change.path)) for change in changes)


def readable(changes: Iterable[Change]) -> bytes:
    """The same for people: of a notebook the Python of each cell that changes, which no program takes as a patch."""
    parts: list[bytes] = []
    for change in changes:
        if not change.cells:
            parts.append(diff([change]))
        for cell in change.cells:
            name = f"{name_of(change.path)}:cell {cell.number}"
            parts.append(unified(f"{cell.old}\n".encode(), f"{cell.new}\n".encode(), name))
    return b"".join(parts)


def unified(old: bytes, new: bytes, name: str) -> bytes:
    """The diff of one file; `name` has forward slashes."""
    before, after = _header("a", name), _header("b", name)
    lines = difflib.diff_bytes(
        difflib.unified_diff, lines_of(old), lines_of(new), before, after, n=CONTEXT, lineterm=b"\n"
    )
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def name_of(path: str) -> str:
    """A path as the diff names it: relative to the nearest folder that holds `.git`, else to the current one.

    Links are followed, because neither program patches through one. A file that is in neither is named from the root.
    """
    real = Path(path).resolve()
    here = Path.cwd().resolve()
    top = next((folder for folder in real.parents if (folder / ".git").exists()), here)
    return real.relative_to(top if top in real.parents else real.anchor).as_posix()


def coloured(text: bytes) -> bytes:
    """The same diff with the colours of a terminal."""
    return b"".join(map(_coloured, lines_of(text)))


def _coloured(line: bytes) -> bytes:
    colour = next((colour for start, colour in COLOURS if line.startswith(start)), b"")
    body = line.rstrip(b"\r\n")
    return b"\x1b[%sm%s\x1b[0m%s" % (colour, body, line[len(body) :]) if colour else line


def lines_of(content: bytes) -> list[bytes]:
    parts = content.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])


def _header(side: str, name: str) -> bytes:
    path = f"{side}/{name}"
    if any(character in QUOTED or character < " " for character in path):
        quoted = "".join(QUOTED.get(c) or (c if c >= " " else f"\\{ord(c):03o}") for c in path)
        return os.fsencode(f'"{quoted}"')
    return os.fsencode(path + ("\t" if " " in path else ""))  # git's own way: a TAB ends a name with blanks
