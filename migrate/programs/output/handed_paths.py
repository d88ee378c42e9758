"""Paths that are handed to a library of which nothing is known: it may read the file that the program has written.

`found = truth.loadRes(path)` of pycocotools reads what the main process alone has written a line above.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts


def handed_paths(facts: Facts, call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call, where what is called is such a library's, or a method of an object that it made."""
    names = facts.called(call) or _makers(facts, call.func)
    if names and not facts.targets(call) and all(_is_unknown(facts, name) for name in names):
        yield from arguments(call)


def _makers(facts: Facts, function: ast.expr) -> set[str]:
    """What made the object whose method is called, where only a library's name is known of it."""
    owner = facts.values(function.value) if isinstance(function, ast.Attribute) else frozenset()
    return {value.name if value.role is Role.UNKNOWN and value.unit is None else "" for value in owner}


def _is_unknown(facts: Facts, name: str) -> bool:
    library = name.partition(".")[0]
    return library not in {"", "torch", *sys.stdlib_module_names} and facts.row(name) is None
