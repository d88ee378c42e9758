"""The way back: a cell's new source in the JSON of the old one, where lines that stay keep their very characters."""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from migrate.source.notebook.document import Cell, Document

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CHARACTER = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)
_ESCAPED = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")  # what need not be escaped


def written(document: Document, sources: Mapping[int, str]) -> bytes:
    """The notebook with new sources for the cells with these numbers; everything else is what it was."""
    text, parts, past = document.text, [], 0
    escapes = text.isascii() and _ESCAPED.search(text) is not None
    for cell in document.cells:
        if cell.number in sources:
            old = text[cell.place.start : cell.place.end]
            parts += [text[past : cell.place.start], _value(old, cell, sources[cell.number], escapes=escapes)]
            past = cell.place.end
    return "".join([*parts, text[past:]]).encode()


def _value(old: str, cell: Cell, source: str, *, escapes: bool) -> str:
    """The JSON of a source: a text, or a list of lines, as it was."""
    before, after = lines(cell.source), lines(source)
    if old.startswith('"'):
        return f'"{"".join(_kept(before, _pieces(old[1:-1]), after, escapes=escapes))}"'
    strings = list(_STRING.finditer(old))
    bodies = [match[0][1:-1] for match in strings]
    if [json.loads(f'"{body}"', strict=False) for body in bodies] != before:  # not one line an item
        bodies = _pieces("".join(bodies))
    kept = [f'"{body}"' for body in _kept(before, bodies, after, escapes=escapes)]
    if not strings:
        return f"[{', '.join(kept)}]"
    first, last = strings[0].start(), strings[-1].end()
    between = old[strings[0].end() : strings[1].start()] if len(strings) > 1 else f",{old[1:first]}"
    return old[:first] + between.join(kept) + old[last:]


def _pieces(body: str) -> list[str]:
    """The inside of a JSON string, cut behind each line feed."""
    found = [""]
    for character in _CHARACTER.findall(body):
        found[-1] += character
        if character in ("\\n", "\n"):
            found.append("")
    return found if found[-1] else found[:-1]


def _kept(before: Sequence[str], bodies: Sequence[str], after: Sequence[str], *, escapes: bool) -> Iterable[str]:
    """The new lines as JSON, without quotes: those that stay as they were written."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, stop, first, last in matcher.get_opcodes():
        if kind == "equal":
            yield from bodies[start:stop]
            continue
        # A line that only gets a line feed, or loses it, as the last one does.
        known = {
            b.rstrip("\n"): body.removesuffix("\\n")
            for b, body in zip(before[start:stop], bodies[start:stop], strict=True)
        }
        for line in after[first:last]:
            bare = line.rstrip("\n")
            body = known.get(bare, json.dumps(bare, ensure_ascii=escapes)[1:-1])
            yield f"{body}\\n" if line.endswith("\n") else body


def lines(source: str) -> list[str]:
    """The lines of a source as notebooks keep them: cut behind line feeds, nothing else."""
    parts = source.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + parts[-1:] if parts[-1] else [f"{part}\n" for part in parts[:-1]]


def line_at(document: Document, cell: int, line: int) -> int:
    """The place in the JSON of a line (1-based) of a cell; that of its source where there is no such line."""
    place = next((one.place for one in document.cells if one.number == cell), None)
    if place is None:
        return 0
    fed = 1
    for match in _STRING.finditer(document.text, place.start, place.end):
        at = match.start()
        for piece in _pieces(match[0][1:-1]):
            if fed == line:
                return at
            fed += piece.endswith(("\\n", "\n"))
            at += len(piece)
    return place.start
