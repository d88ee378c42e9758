"""Second names of functions: `train = train_nll if nll else train_dice`, in a function that only calls `train()`.

So is the list of what a module exports, where it holds the functions themselves: `__all__ = (train, test)`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import Function

if TYPE_CHECKING:
    from migrate.analysis.syntax import Tree
    from migrate.analysis.units import Unit


_ALL = "__all__"


def is_second_name(tree: Tree, unit: Unit, node: ast.expr) -> bool:
    """Whether a function that is read here only gets another local name, by which it is called and nothing else."""
    given = tree.parents[node]
    if isinstance(given, ast.IfExp) and given.test is not node:
        node, given = given, tree.parents[given]
    if not isinstance(unit, Function) or not isinstance(given, ast.Assign) or given.value is not node:
        return False
    target, inside = given.targets[-1], [*ast.walk(unit.node)]
    if len(given.targets) > 1 or not isinstance(target, ast.Name) or _is_of_others(inside, target.id):
        return False
    read = [n for n in inside if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load)]
    return all(isinstance(call := tree.parents[n], ast.Call) and call.func is n for n in read)


def is_only_listed(tree: Tree, node: ast.expr) -> bool:
    """Whether a function only stands in `__all__`, which nothing in its file reads: Python takes texts from there."""
    row = tree.parents[node]
    given = tree.parents.get(row) if isinstance(row, (ast.Tuple, ast.List)) else None
    if not isinstance(given, ast.Assign) or [ast.unparse(target) for target in given.targets] != [_ALL]:
        return False
    return not any(isinstance(n, ast.Name) and n.id == _ALL and isinstance(n.ctx, ast.Load) for n in tree.nodes)


def _is_of_others(inside: list[ast.AST], name: str) -> bool:
    return any(isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in inside)
