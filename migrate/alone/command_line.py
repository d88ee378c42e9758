"""Options of the command line, by the attributes that they make."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def option(node: ast.AST) -> str | None:
    """The attribute that `parser.add_argument(...)` makes."""
    from migrate.programs.values.sources import option_name

    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
        return option_name(node)
    return None


def options(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Those of all options among some nodes."""
    return frozenset(name for node in nodes if (name := option(node)) is not None)
