"""Lists that are made where a program says so: `[]`, `[a, b]`, `list()`, `list(x)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def is_list_call(facts: Facts, node: ast.AST | None) -> bool:
    """Whether `list` is called there."""
    return isinstance(node, ast.Call) and "builtins.list" in facts.called(node)


def is_new_list(facts: Facts, node: ast.AST | None) -> bool:
    """Whether a list is written out there, put together by a comprehension, or made by `list`."""
    return isinstance(node, (ast.List, ast.ListComp)) or is_list_call(facts, node)


def is_empty_list(facts: Facts, node: ast.AST | None) -> bool:
    """Whether a list with nothing in it is made there."""
    if isinstance(node, ast.List):
        return not node.elts
    return isinstance(node, ast.Call) and not node.args and is_list_call(facts, node)
