"""Lines that look blank and say something: a form feed alone is where a page begins, for editors and on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst


def is_blank(line: cst.EmptyLine) -> bool:
    """Whether a line says nothing at all."""
    return line.comment is None and "\f" not in line.whitespace.value
