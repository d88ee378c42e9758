"""How inserted code is laid out: on one line where it fits, else as Black would break it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 88  # Black's default; what most of the field's code is formatted to


def assignment(
    targets: Sequence[str], function: str, arguments: Sequence[str], indent: int, as_tuple: bool = False
) -> str:
    """`a, b = function(a, b)`; with `as_tuple` the arguments are one tuple."""
    left, given = ", ".join(targets), ", ".join(arguments)
    if as_tuple and len(arguments) > 1:
        given = f"({given})"
    line = f"{left} = {function}({given})"
    if indent + len(line) <= WIDTH:
        return line
    return f"{left} = {function}(\n    {given}\n)"
