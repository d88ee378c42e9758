"""Which indexes choose any number of rows, by how they are written."""

from __future__ import annotations

import ast

from migrate.analysis.known.same import MASKS


def is_mask(node: ast.expr) -> bool:
    """`y > 0`, `~mask`, `one & other`, `mask.bool()`."""
    if isinstance(node, (ast.UnaryOp, ast.BinOp)):
        return isinstance(node.op, (ast.Invert, ast.BitAnd, ast.BitOr))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in MASKS
    return isinstance(node, ast.Compare)
