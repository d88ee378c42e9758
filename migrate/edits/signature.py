"""Where a new parameter may stand."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def behind(name: str, names: Sequence[str]) -> int:
    """The place behind a name; the first one for the empty string."""
    return names.index(name) + 1 if name else 0


def check_parameter(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, after: str | None) -> None:
    """Does nothing if the parameter, which has no default, can stand there.

    Raises:
        ValueError: it is no name, the name is taken, or Python would not accept it there.
    """
    if not name.isidentifier():
        raise ValueError(f"{name!r} is not a name.")
    if any(name == parameter.arg for parameter in ast.walk(function.args) if isinstance(parameter, ast.arg)):
        raise ValueError(f"{function.name}() already has a parameter called {name}.")
    names = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    if after and after not in names:
        raise ValueError(f"{function.name}() has no positional parameter {after!r}. It has: {', '.join(names)}.")
    place = len(names) if after is None else behind(after, names)
    required = len(names) - len(function.args.defaults)
    if place > required:
        raise ValueError(
            f"{name} of {function.name}() would follow {names[place - 1]}, which has a default. "
            "Name a parameter without default in after=."
        )
