"""What is left over where something went away: the way out of a function, and what is said of what is gone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.pure import is_pure

if TYPE_CHECKING:
    from migrate.alone.pen import Pen
    from migrate.alone.uses import Uses


def tails(before: Uses, now: Uses, pen: Pen) -> bool:
    """`return`, and `if not is_available(): return`, at the end of a function that went on there."""
    found = False
    for name, node in now.definitions():
        last = node.body[-1]
        if isinstance(last, ast.If):
            leaves = not last.orelse and is_pure(last.test) and len(last.body) == 1 and _is_bare(last.body[0])
        else:
            leaves = len(node.body) > 1 and _is_bare(last)
        if leaves and not before.has_like(name, node):
            pen.remove(last)
            found = True
    return found


def prints(before: Uses, now: Uses, pen: Pen) -> bool:
    """`print(sampler)`, where there is none any more."""
    found = False
    for path, _, _, read in now.orphans(before):
        node: ast.AST | None = read
        while node is not None and not isinstance(node, ast.stmt):
            node = now.parent(path, node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _tells_only(node.value, read.id):
            pen.remove(node)
            found = True
    return found


def _tells_only(call: ast.Call, name: str) -> bool:
    """`print("Sampler = %s" % str(sampler))`."""
    read = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)} - {"str", "repr", "type"}
    measured = any(isinstance(n, ast.Name) and n.id == "len" for n in ast.walk(call))
    return isinstance(call.func, ast.Name) and read == {"print", name} and not measured


def _is_bare(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return) and statement.value is None
