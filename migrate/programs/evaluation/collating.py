"""What puts the samples of a batch together."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import data
from migrate.analysis.roles import Role
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def puts_rows_first(facts: Facts, node: ast.expr, depth: int = 4) -> bool:
    """Whether a `collate_fn` is torch's own, or none, whichever way it is chosen: `given or default_collate`."""
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, (ast.BoolOp, ast.IfExp)):
        parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
        return all(puts_rows_first(facts, part, depth) for part in parts)
    given = facts.once(Sources).given(node)
    if given.expressions:
        return depth > 0 and given.complete and all(puts_rows_first(facts, e, depth - 1) for e in given.expressions)
    values = facts.values(node)
    return bool(values) and all(v.role is Role.KNOWN and v.name in data.PUTS_ROWS_FIRST for v in values)
