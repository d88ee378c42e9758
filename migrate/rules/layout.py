"""How inserted code is laid out: on one line where it fits, else as Black would break it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from migrate.source.project import SourceFile

WIDTH = 88  # Black's default; what most of the field's code is formatted to


@dataclass(frozen=True, slots=True)
class Place:
    """How deep inserted code will stand, and with what the file indents."""

    column: int
    unit: str


def place(file: SourceFile, statement: ast.stmt) -> Place:
    """The place of a statement in its file."""
    found = re.search(rb"\n([ \t]+)\S", file.content)
    unit = found[1].decode() if found else "    "
    return Place(statement.col_offset, "\t" if unit.startswith("\t") else unit if len(unit) <= 4 else "    ")


def assignment(
    targets: Sequence[str], function: str, arguments: Sequence[str], at: Place, as_tuple: bool = False
) -> str:
    """`a, b = function(a, b)`; with `as_tuple` the arguments are one tuple."""
    left, given = ", ".join(targets), ", ".join(arguments)
    if as_tuple and len(arguments) > 1:
        given = f"({given})"
    line = f"{left} = {function}({given})"
    if at.column + len(line) <= WIDTH:
        return line
    return f"{left} = {function}(\n{at.unit}{given}\n)"
