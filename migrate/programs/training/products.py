"""Sums over a batch that are written otherwise than as `x.sum()`.

error @ error        torch.dot(error, error)        torch.einsum("bi,bi->", error, error)
error.pow(2).sum(0)                                 over the samples, and what is left of the features afterwards
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import ROWS, Role, only, roles
from migrate.analysis.syntax import argument_at, arguments
from migrate.programs.values.place import number
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

#: Of two rows of numbers, or of a square of them, one number.
_TO_ONE = frozenset(f"torch.{name}" for name in "dot vdot inner trace linalg.vecdot tensordot".split())
_METHODS = frozenset("dot vdot inner trace".split())


def is_product(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression is a product of what has a row for each sample that leaves no rows."""
    if isinstance(node, ast.BinOp):
        is_square = isinstance(node.op, ast.MatMult) and ast.dump(node.left) == ast.dump(node.right)
        return is_square and _has_rows(facts, node.left)
    if not isinstance(node, ast.Call) or facts.targets(node):
        return False
    names = called_by_name(facts, node)
    if "torch.einsum" in names:
        formula = node.args[0] if node.args else None
        is_folding = isinstance(formula, ast.Constant) and str(formula.value).replace(" ", "").endswith("->")
        return is_folding and any(_has_rows(facts, each) for each in node.args[1:])
    if names & _TO_ONE:
        return all(_is_of_rows(facts, each) for each in arguments(node)[:2])
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
    return is_method and isinstance(node.func, ast.Attribute) and _has_rows(facts, node.func.value)


def folds_rows(facts: Facts, call: ast.Call) -> bool:
    """Whether a sum over some dimensions is one over the samples: `error.sum(0)`, `torch.sum(error, dim=(0, 1))`."""
    at = int("torch.sum" in called_by_name(facts, call))
    dim = argument_at(call, at, "dim", "axis")
    several = dim.elts if isinstance(dim, (ast.Tuple, ast.List)) else []
    summed = call.args[0] if at and call.args else getattr(call.func, "value", None)
    if summed is None or not _has_rows(facts, summed):
        return False
    is_first = dim is not None and number(dim) == 0 and only(facts.values(call), Role.STATISTIC)
    return is_first or any(number(each) == 0 for each in several)


def _has_rows(facts: Facts, node: ast.expr) -> bool:
    return bool(roles(facts.values(node)) & ROWS)


def _is_of_rows(facts: Facts, node: ast.expr) -> bool:
    """Whether something is computed of such rows, or is a product of them: `error.T @ error`."""
    if isinstance(node, ast.BinOp):
        return _is_of_rows(facts, node.left) and _is_of_rows(facts, node.right)
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return _is_of_rows(facts, node.value)
    return _has_rows(facts, node)
