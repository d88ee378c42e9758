"""Where code adds up what is in a list: the mean of such lists, entry by entry, would make its sum smaller.

    sum(losses)        np.sum(losses)        sum(each["loss"] for each in rows)
    losses, scores = zip(*rows)              for each in losses:
    total = sum(losses)                          total += each

A sum that is divided by the number of its entries is a mean, and stays what it is: `sum(losses) / len(losses)`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import reads, targets_of, walk
from migrate.programs.values.additions import additions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts

_SUMS = frozenset({"builtins.sum", "numpy.sum", "math.fsum", "torch.sum", "numpy.cumsum"})
_SUMMING = frozenset({"sum", "cumsum"})  # methods
_HOLDING = (ast.comprehension, ast.ListComp, ast.GeneratorExp, ast.Starred, ast.Tuple, ast.List, ast.Subscript)
#: What gives the entries on as they are, among others or alone.
_GIVING = frozenset(f"builtins.{name}" for name in ("zip", "list", "tuple", "enumerate", "reversed", "sorted"))
_GIVING |= {"numpy.array", "numpy.asarray", "torch.tensor", "torch.as_tensor", "torch.stack"}


def is_summed(facts: Facts, readings: Iterable[ast.expr]) -> bool:
    """Whether what is in a list is added up somewhere, which is read at some places, other than for a mean."""
    waiting, seen = list(readings), set[ast.expr]()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        target = _getting(facts, node)
        if _adds_up(facts, node) or (isinstance(target, ast.For) and _adds_entries(target)):
            return True
        waiting += _taken(facts, node, target)
    return False


def _adds_up(facts: Facts, node: ast.expr) -> bool:
    """Whether a list is read to be added up, or an entry of it to be added."""
    parents = facts.tree(node).parents
    inner: ast.AST = node
    while isinstance(inner, (ast.expr, ast.comprehension)):
        if isinstance(inner, ast.Call) and _is_sum(facts, inner):
            return not _is_divided(parents[inner], inner, node)
        inner = parents[inner]
    return False


def _is_sum(facts: Facts, call: ast.Call) -> bool:
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _SUMMING
    return is_method or bool(facts.called(call) & _SUMS)


def _is_divided(above: ast.AST, total: ast.expr, of: ast.expr) -> bool:
    """Whether a sum is divided by how many there are: by `len(losses)`."""
    match above:
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Call(func=ast.Name("len"), args=[counted])):
            return left is total and ast.unparse(counted).startswith(ast.unparse(of))
    return False


def _getting(facts: Facts, node: ast.expr) -> ast.Assign | ast.AnnAssign | ast.For | None:
    """What gives names the list that is read at a place, or the entries of it."""
    parents = facts.tree(node).parents
    inner: ast.AST = node
    while isinstance(parents[inner], _HOLDING) or _is_giving(facts, parents[inner]):
        inner = parents[inner]
    match parents[inner]:
        case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.For(iter=value) as getting if value is inner:
            return getting
    return None


def _taken(facts: Facts, node: ast.expr, getting: ast.Assign | ast.AnnAssign | ast.For | None) -> Iterator[ast.expr]:
    """Where these names are read."""
    if getting is None:
        return
    targets = [getting.target] if isinstance(getting, ast.For) else targets_of(getting)
    names = {n.id for target in targets for n in walk(target) if isinstance(n, ast.Name)}
    read = (n for n in facts.own(facts.unit(node)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    yield from (n for n in read if n.id in names)


def _adds_entries(loop: ast.For) -> bool:
    """`for each in losses: total += each`."""
    names = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    return any(names & reads(value) for node in walk(loop) for _, value in additions(node))


def _is_giving(facts: Facts, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(facts.called(node) & _GIVING)
