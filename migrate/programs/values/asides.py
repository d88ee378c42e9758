"""Expressions that stand there for what they do: `epoch and torch.save(...)`, `[f.write(row) for row in rows]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def done(statement: ast.stmt) -> list[ast.Call]:
    """The calls for which an expression stands there: nobody reads what they give. None of another statement."""
    if not isinstance(statement, ast.Expr):
        return []
    return [part for part, is_asked in _parts(statement.value) if isinstance(part, ast.Call) and not is_asked]


def asked(statement: ast.Expr) -> list[ast.expr]:
    """What else such an expression computes on its way to them: conditions, what is gone through."""
    return [part for part, is_asked in _parts(statement.value) if is_asked or not isinstance(part, ast.Call)]


def _parts(node: ast.expr) -> Iterator[tuple[ast.expr, bool]]:
    """What an expression is made of, each with whether the expression asks for its value."""
    before: list[ast.expr] = []
    if isinstance(node, ast.BoolOp):
        before, last = node.values[:-1], node.values[-1:]
    elif isinstance(node, ast.IfExp):
        before, last = [node.test], [node.body, node.orelse]
    elif isinstance(node, (ast.ListComp, ast.SetComp)):
        before, last = [each for part in node.generators for each in (part.iter, *part.ifs)], [node.elt]
    elif isinstance(node, (ast.List, ast.Set, ast.Tuple)):
        last = node.elts
    else:
        yield node, False
        return
    for each in before:
        yield each, True
    for each in last:
        yield from _parts(each)
