"""The JSON of a notebook with the place of every cell's source, so that one can be replaced and nothing else moves.

The standard decoder says where a value ends (`raw_decode`); the objects that lead to a source are walked by hand, and
everything is decoded once. Writing is the other way: the lines of a source that stay keep their very characters, so
escapes, indentation and separators are those of whoever wrote the file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from migrate.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST = 4  # of the format: before it cells were in worksheets
_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_UPGRADE = "Bring it up to date: jupyter nbconvert --to notebook --inplace {path}"
_MEND = "Open it in Jupyter and save it, or leave it out."


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands in a text: from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell."""

    number: int  # 1-based among all cells, as editors count
    source: str
    place: Place  # of the value of its "source"
    count: int | None  # how many cells the kernel had run when it ran this one
    language: str  # what its own metadata say; mostly nothing


@dataclass(frozen=True, slots=True)
class Document:
    """A notebook's text and what was found in it."""

    text: str
    cells: tuple[Cell, ...]
    language: str  # in small letters; empty where it is not said


def parsed(content: bytes, path: str) -> Document:
    """The document that a notebook's bytes hold. An empty file is a notebook without cells.

    Raises:
        SourceError: it is no notebook, or one of a format that is not read.
    """
    try:
        text = content.decode("utf-8")
        if not text.strip("\ufeff \t\r\n"):
            return Document(text, (), "")
        return _document(text, path)
    except UnicodeDecodeError as error:
        raise SourceError(f"byte 0x{content[error.start]:02x} is not UTF-8", _MEND, path=path) from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise SourceError(f"this is not the JSON of a notebook: {_why(error)}", _MEND, path=path, line=line) from error
    except RecursionError as error:
        raise SourceError("this is not the JSON of a notebook: it nests too deep", _MEND, path=path) from error


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg[:1].lower() + error.msg[1:]
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def _document(text: str, path: str) -> Document:
    reader = _Reader(text, int(text.startswith("\ufeff")))
    cells: list[Cell] = []
    rest: dict[str, Any] = {}
    for key in reader.members():
        if key == "cells":
            cells = [cell for number, _ in enumerate(reader.items(), 1) if (cell := _cell(reader, number))]
        else:
            rest[key] = reader.value()
    version = rest["nbformat"]
    if not isinstance(version, int) or version < OLDEST:
        what = f"this is a notebook of format {version}; formats from {OLDEST} on are read"
        raise SourceError(what, _UPGRADE.format(path=path), path=path)
    return Document(text, tuple(cells), _language(rest.get("metadata") or {}))


def _language(metadata: dict[str, Any]) -> str:
    kernel, language = metadata.get("kernelspec") or {}, metadata.get("language_info") or {}
    return str(language.get("name") or kernel.get("language") or "").lower()


def _cell(reader: _Reader, number: int) -> Cell | None:
    """The code cell that the reader stands before; None for one of another kind."""
    values: dict[str, Any] = {}
    place = Place(0, 0)
    for key in reader.members():
        start = reader.begin()
        values[key] = reader.value()
        if key == "source":
            place = Place(start, reader.at)
    if values["cell_type"] != "code":
        return None
    given = values["source"]
    source = given if isinstance(given, str) else "".join(given)
    count = values.get("execution_count")
    own = values.get("metadata") or {}
    language = (own.get("vscode") or {}).get("languageId") or own.get("kernel") or ""
    return Cell(number, source, place, count if isinstance(count, int) else None, str(language).lower())


class _Reader:
    """Goes through a JSON text; `at` is where it stands."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.at = at

    def begin(self) -> int:
        """The place where the next value begins."""
        match = _BLANK.match(self._text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def value(self) -> Any:
        """The next value."""
        value, self.at = _DECODER.raw_decode(self._text, self.begin())
        return value

    def members(self) -> Iterator[str]:
        """The keys of the next object; after each the caller reads its value."""
        yield from (str(self._key()) for _ in self._parts("{", "}"))

    def items(self) -> Iterator[int]:
        """The places of the items of the next array; the caller reads each."""
        yield from (self.begin() for _ in self._parts("[", "]"))

    def _key(self) -> Any:
        key = self.value()
        self._take(":")
        return key

    def _parts(self, first: str, last: str) -> Iterator[None]:
        self._take(first)
        if self._next() == last:
            self._take(last)
            return
        yield None
        while self._take(f",{last}") == ",":
            yield None

    def _next(self) -> str:
        start = self.begin()
        return self._text[start : start + 1]

    def _take(self, characters: str) -> str:
        found = self._next()
        if not found or found not in characters:
            raise json.JSONDecodeError(f"Expecting {' or '.join(characters)}", self._text, self.at)
        self.at += 1
        return found
