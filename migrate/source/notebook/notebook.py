"""A notebook as one module of Python, and the way back.

Cells are joined in their order, with a statement between them that means nothing and that no rule touches: what an edit
puts before the first statement of a cell, or behind its last one, stays in that cell. A cell that comes back as it went
keeps its bytes; a module that does not come apart into the same cells is refused.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from migrate.errors import SourceError
from migrate.source.notebook.document import Cell, Document, parsed
from migrate.source.notebook.magics import LINE_END, Python, Unreadable, python, restored
from migrate.source.notebook.writing import line_at, lines, written

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "__migrate_cell"  # begins the names that stand for what is not Python
#: What a cell may say of its language and be one of ours.
PYTHON = frozenset({"", "python", "python2", "python3", "ipython"})


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell before and after."""

    number: int  # 1-based among all cells
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Joined:
    """A cell that is part of the module."""

    cell: Cell
    python: Python
    line: int  # where it begins there, 1-based


@dataclass(eq=False)
class Notebook:
    """A notebook's bytes, and the module that its code cells make together (`module`)."""

    path: str
    content: bytes
    document: Document

    @property
    def is_python(self) -> bool:
        """Whether its cells are run by Python."""
        return self.document.language in PYTHON

    @property
    def language(self) -> str:
        """The language that its metadata name."""
        return self.document.language

    @cached_property
    def mark(self) -> str:
        """What begins the statements between the cells, and the names that stand for what is not Python."""
        mark = MARK
        while mark in self.document.text:
            mark += "_"
        return mark

    @cached_property
    def joined(self) -> tuple[Joined, ...]:
        """The cells that are Python, in order.

        Raises:
            SourceError: one of them does not parse.
        """
        found: list[Joined] = []
        line = 2  # below its border
        for cell in self.document.cells:
            if cell.language not in PYTHON:
                continue
            try:
                read = python(cell.source, f"{self.mark}_{cell.number}")
                (read.text or "").encode()
            except (Unreadable, UnicodeEncodeError) as error:
                raise _unreadable(error, self.path, cell) from error
            if read.text is not None:
                found.append(Joined(cell, read, line))
                line += len(LINE_END.findall(read.text)) + 2
        return tuple(found)

    @cached_property
    def module(self) -> bytes:
        """The module. It holds nothing where there is no cell.

        Raises:
            SourceError: a cell does not parse.
        """
        return "".join(f"{self._border(one)}\n{one.python.text}\n" for one in self.joined).encode()

    def _border(self, one: Joined) -> str:
        """The statement above a cell. That of the first one also keeps a `coding` comment from meaning anything."""
        return f'"{self.mark} {one.cell.number}"'

    # --- places -----------------------------------------------------------------------------------------------------

    def place(self, line: int) -> tuple[int, int]:
        """The number of the cell, and the line in it, of a line of the module; (0, 0) where there is no cell.

        What is about the whole module stands in its first line, a border: that is the first line of the first cell.
        """
        if not self.joined:
            return (0, 0)
        one = self.joined[max(bisect_right([one.line for one in self.joined], line) - 1, 0)]
        last = len(LINE_END.findall(one.cell.source)) + 1
        return one.cell.number, min(max(line - one.line + 1, 1), last)

    def column(self, line: int, column: int) -> int:
        """The column in the cell for a column of a line of the module: `%time` is shorter than what stands for it."""
        at = bisect_right([one.line for one in self.joined], line) - 1
        text = LINE_END.split(self.module.decode())[line - 1] if at >= 0 else ""
        for mask in self.joined[at].python.masks if at >= 0 else ():
            if not mask.closes and text.lstrip().startswith(mask.inside):
                return max(column - len(mask.inside) + len(mask.outside), 1)
        return column

    def line(self, cell: int, line: int) -> int:
        """The line of the module for a line of a cell; 0 where that does not exist."""
        one = next((one for one in self.joined if one.cell.number == cell), None)
        if one is None or not 1 <= line <= len(LINE_END.findall(one.cell.source)) + 1:
            return 0
        return one.line + line - 1

    def lines(self, cell: int) -> list[str]:
        """The lines of a code cell; none where there is no such cell."""
        source = next((one.source for one in self.document.cells if one.number == cell), None)
        return [] if source is None else LINE_END.split(source)

    def line_of_file(self, cell: int, line: int) -> tuple[int, str]:
        """The number and the text of the line of the JSON that holds a line of a cell."""
        text = self.document.text
        at = line_at(self.document, cell, line)
        number = text.count("\n", 0, at) + 1
        return number, text.split("\n")[number - 1]

    @property
    def disorder(self) -> tuple[Cell, Cell] | None:
        """The first two cells of which the kernel ran the lower one earlier, or both at once."""
        ran = [one.cell for one in self.joined if one.cell.count is not None and one.cell.source.strip()]
        return next(((one, other) for one, other in pairwise(ran) if (one.count or 0) >= (other.count or 0)), None)

    # --- the way back -----------------------------------------------------------------------------------------------

    def changes(self, module: bytes) -> tuple[CellChange, ...]:
        """The cells that are others in a new version of the module.

        Raises:
            Mixed: it does not come apart into these cells.
        """
        return tuple(
            CellChange(one.cell.number, one.cell.source, new)
            for one, new in self._sources(module)
            if new != one.cell.source
        )

    def content_with(self, module: bytes) -> bytes:
        """The bytes of the notebook with the cells of a new version of the module.

        Raises:
            Mixed: see `changes`.
        """
        return written(self.document, {change.number: change.new for change in self.changes(module)})

    def faults(self, module: bytes) -> list[str]:
        """What is wrong with a new version of the module as these cells; empty if nothing is."""
        try:
            changes = {change.number: change.new for change in self.changes(module)}
            new = written(self.document, changes)
        except Mixed as error:
            return [str(error)]
        expected, found = json.loads(self.content), json.loads(new)
        for number, cell in enumerate(expected["cells"], 1):
            if number in changes:
                given = cell["source"]
                cell["source"] = changes[number] if isinstance(given, str) else lines(changes[number])
        return [] if found == expected else ["the notebook would change outside of its sources"]

    def _sources(self, module: bytes) -> Iterator[tuple[Joined, str]]:
        """Each cell with its source in a version of the module."""
        before, *parts = re.split(rf'^"{self.mark} (?=\d+"$)', module.decode(), flags=re.MULTILINE)
        if before or len(parts) != len(self.joined):
            raise Mixed("the cells have lost their borders")
        for one, part in zip(self.joined, parts, strict=True):
            border, _, text = part.partition("\n")
            if border != f'{one.cell.number}"':
                raise Mixed(f"cell {one.cell.number} is no longer in its place")
            yield one, self._source(one, text.removesuffix("\n"))

    def _source(self, one: Joined, part: str) -> str:
        """The source of a cell, from what stands in its place in the module."""
        old = one.python.text or ""
        new = _edged(part, old)
        if new == old:
            return one.cell.source
        source = restored(new, one.python)
        if source is None or self.mark in source:
            raise Mixed(f"a line of IPython in cell {one.cell.number} has lost its place")
        return _ended_as(source, old)


class Mixed(Exception):
    """A module does not come apart into the cells that it was made of: a bug of ours, told by `faults`."""


def read(content: bytes, path: str) -> Notebook:
    """The notebook that these bytes are.

    Raises:
        SourceError: they are none.
    """
    return Notebook(path, content, parsed(content, path))


def _unreadable(error: Unreadable | UnicodeEncodeError, path: str, cell: Cell) -> SourceError:
    if isinstance(error, Unreadable):
        what, line = f"syntax error: {error.why}", error.line
    else:
        what, line = "the source holds half of a surrogate pair, which is no text", 1
    return SourceError(what, "Mend the cell, or leave the notebook out.", path=path, line=line, cell=cell.number)


def _edged(text: str, like: str) -> str:
    """A text with as many blank lines above and below as another one."""
    if not (text.strip() and like.strip()):
        return text if text == like else text.strip()
    first, last = _edges(like)
    above, below = _edges(text)
    return first + text[len(above) : len(text) - len(below)] + last


def _edges(text: str) -> tuple[str, str]:
    """The blank lines above a text that is not blank, and those below, with the line end before them."""
    above = re.match(r"(?:[ \t]*(?:\r\n|\r|\n))*", text)
    below = re.search(r"(?:(?:\r\n|\r|\n)[ \t]*)*\Z", text)
    return (above[0] if above else ""), (below[0] if below else "")


def _ended_as(source: str, like: str) -> str:
    """A source whose lines all end as those of another do."""
    if "\r\n" in like and not re.search(r"(?<!\r)\n", like):
        return re.sub(r"(?<!\r)\n", "\r\n", source)
    return source
