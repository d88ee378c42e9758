"""Names that a file reads without writing them: it asks for all that it has, and keeps, prints or changes them.

    config = {name: value for name, value in globals().items() if isinstance(value, (int, str))}

What stands above that stays, though nothing else reads it any more.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What has all names of the module that calls it; with something in the parentheses those of that.
_LISTING = frozenset({"globals", "locals", "vars", "dir"})


def listed_until(module: ast.Module) -> float:
    """The last line at which all names of a file are read, or may be by text that it runs; 0: there is none."""
    return max(map(_line, _own(module)), default=0)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """What runs with the file, and the functions in it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, FUNCTIONS):
            yield from _own(child)


def _line(node: ast.AST) -> float:
    if isinstance(node, FUNCTIONS):
        return float("inf") if any(_called(inner) == "globals" for inner in walk(node)) else 0
    if not isinstance(node, ast.Call):
        return 0
    is_listed = _called(node) == "exec" or (_called(node) in _LISTING and not node.args)
    return node.lineno if is_listed else 0


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
