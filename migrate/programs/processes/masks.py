"""Indexes that choose any number of items: `rows[rows > 0]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known

if TYPE_CHECKING:
    from migrate.programs.values.sources import Sources


def is_mask(sources: Sources, index: ast.expr) -> bool:
    """Whether an index chooses any number of items."""
    if isinstance(index, ast.Name):
        given = sources.given(index)
        return not given.complete or any(is_mask(sources, e) for e in given.expressions if not isinstance(e, ast.Name))
    if isinstance(index, ast.Call) and isinstance(index.func, ast.Attribute) and index.func.attr in known.MASKS:
        return True
    parts = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp)
    return isinstance(index, parts) and any(isinstance(inner, ast.Compare) for inner in ast.walk(index))
