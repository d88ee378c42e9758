"""Loops over all batches of a loader in a list: the pass over the loader is over before the loop begins.

`for x, y in list(loader):`, `for x, y in [*loader]:`, and `batches = list(loader)` above. What rows of a batch count is
not known any more by then.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.programs.training.begun import WHOLE
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def at_once(facts: Facts, iterated: ast.expr) -> bool:
    """Whether a loop runs over a list of batches."""
    return any(_lists(facts, node) or is_list(facts, node) for node in walk(iterated))


def is_list(facts: Facts, node: ast.AST, depth: int = 4) -> bool:
    """Whether a name, or an attribute, may be one."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or not depth:
        return False
    given = facts.once(Sources).given(node).expressions
    return any(
        _lists(facts, part) or is_list(facts, part, depth - 1) for each in given for part in (each, *_inside(each))
    )


def _inside(node: ast.expr) -> list[ast.expr]:
    """The elements of a list that is written out: `[*loader]`."""
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else []


def _lists(facts: Facts, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return bool(facts.called(node) & WHOLE) and any(facts.loaders(facts.values(each)) for each in node.args)
    return isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load) and bool(facts.loaders(facts.values(node)))
