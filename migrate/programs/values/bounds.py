"""Numbers that grow where a count comes to a bound, and not with it: `if step > edges[stage]: stage += 1`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def grows_at_bounds(around: Iterable[ast.AST], name: str, is_count: Callable[[ast.Name | ast.Attribute], bool]) -> bool:
    """Whether one of the branches around a statement that adds to a name is come to at a bound of a count."""
    tests = (node.test for node in around if isinstance(node, ast.If))
    compared = (inner for test in tests for inner in walk(test) if isinstance(inner, ast.Compare))
    return any(_is_bound(each, name, is_count) for each in compared)


def _is_bound(compare: ast.Compare, name: str, is_count: Callable[[ast.Name | ast.Attribute], bool]) -> bool:
    """Whether a count is asked for one number, or for one that goes by what the name is."""
    said = {ast.unparse(inner) for inner in walk(compare) if isinstance(inner, (ast.Name, ast.Attribute))}
    if name not in said and not all(isinstance(operator, (ast.Eq, ast.In)) for operator in compare.ops):
        return False
    sides = [side for side in (compare.left, *compare.comparators) if ast.unparse(side) != name]
    return any(isinstance(side, (ast.Name, ast.Attribute)) and is_count(side) for side in sides)
