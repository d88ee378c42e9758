"""Which indexes choose any number of rows, by how they are written."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.same import MASKS

if TYPE_CHECKING:
    from migrate.programs.values.sources import Sources


def is_mask(node: ast.expr) -> bool:
    """`y > 0`, `~mask`, `one & other`, `mask.bool()`."""
    if isinstance(node, (ast.UnaryOp, ast.BinOp)):
        return isinstance(node.op, (ast.Invert, ast.BitAnd, ast.BitOr))
    return _is_asking(node) or isinstance(node, ast.Compare)


def may_be_mask(sources: Sources, index: ast.expr) -> bool:
    """The same of what compares anything, and of a name that is given such a thing, or nobody knows what."""
    if isinstance(index, ast.Name):
        given = sources.given(index)
        named = (each for each in given.expressions if not isinstance(each, ast.Name))
        return not given.complete or any(may_be_mask(sources, each) for each in named)
    parts = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp)
    compares = isinstance(index, parts) and any(isinstance(inner, ast.Compare) for inner in ast.walk(index))
    return compares or _is_asking(index)


def _is_asking(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MASKS
