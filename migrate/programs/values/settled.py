"""Branches that no run takes, since what they ask for was given one constant wherever it is made."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

_DEEPEST = 4  # names between a test and the constant


def is_left_out(facts: Facts, node: ast.AST) -> bool:
    """Whether a node stands where its function never comes: `if self.mean: return x.mean()` of `Loss(mean=False)`."""
    inner, tree = node, facts.tree(node)
    for above in tree.up(node):
        if isinstance(above, FUNCTIONS):
            return False
        if isinstance(above, (ast.If, ast.IfExp)) and inner is not above.test:
            is_body = inner is above.body if isinstance(above, ast.IfExp) else inner in above.body
            if settled(facts, above.test) is (not is_body):
                return True
        inner = above
    return False


def settled(facts: Facts, test: ast.expr, depth: int = _DEEPEST) -> bool | None:
    """What a flag comes out as in every run; None where that is not one thing."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        turned = settled(facts, test.operand, depth)
        return None if turned is None else not turned
    if not depth or not isinstance(test, (ast.Name, ast.Attribute)):
        return None
    given = facts.once(Sources).given(test)
    found = {settled(facts, each, depth - 1) for each in given.expressions} if given.complete else set()
    return found.pop() if len(found) == 1 else None
