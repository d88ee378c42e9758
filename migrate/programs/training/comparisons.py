"""Losses that compare the rows of a batch with each other, as contrastive ones do: each process has those of its own.

Only what is certain is told: a matrix of all rows by all rows (`x @ y.t()`), or rows that are spread against each other
(`x.unsqueeze(1) - y.unsqueeze(0)`, `labels[:, None] == labels[None]`), of tensors with one row a sample, from which the
loss is computed. `torch.cdist` may as well compare points within each sample.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.programs.training.sample_rows import first_of_each, name_of
from migrate.programs.values.place import number

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.training.sample_rows import SampleRows

_PRODUCTS = frozenset({"mm", "matmul", "addmm", "addmm_"})
_COPYING = frozenset({"contiguous", "clone", "detach"})  # the same numbers in the same places
_FIRST = (0, 1)
_RULE = re.compile(r"([a-zA-Z]+),([a-zA-Z]+)->([a-zA-Z]*)")  # of two tensors


class Comparisons:
    """The comparisons that one training loop's losses are computed from."""

    def __init__(self, facts: Facts, rows: SampleRows) -> None:
        self._facts = facts
        self._rows = rows

    def each(self) -> list[ast.expr]:
        """The first in each function, and in the loop itself."""
        return first_of_each(self._facts, filter(self._compares, self._rows.parts))

    def _compares(self, node: ast.expr) -> bool:
        if pair := factors(node, strictly=False) or _summed(node):
            return all(map(self._rows.are, pair))
        sides = _sides(node)
        spread = [[inner for side in sides if (inner := _spread(side, at)) is not None] for at in _FIRST]
        return all(len(found) == 1 and self._rows.are(found[0]) for found in spread)


def factors(node: ast.expr, *, strictly: bool = True) -> tuple[ast.expr, ast.expr] | None:
    """The tensors whose rows a product sets against each other: `x @ y.t()`.

    `strictly`: nothing but matrices can be turned in this way.
    """
    sides = _sides(node)
    is_product = isinstance(getattr(node, "op", None), ast.MatMult) or name_of(node) in _PRODUCTS
    turned = _turned(sides[-1]) if is_product and len(sides) > 1 else None
    if turned is None or (strictly and name_of(sides[-1]) == "transpose"):
        return None
    return sides[-2], turned


def _sides(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if not isinstance(node, ast.Call):
        return []
    return [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args]


def _summed(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The same of `torch.einsum("ik,jk->ij", x, y)`."""
    rule, *tensors = node.args if isinstance(node, ast.Call) and name_of(node) == "einsum" and node.args else [node]
    text = rule.value.replace(" ", "") if isinstance(rule, ast.Constant) and isinstance(rule.value, str) else ""
    found = _RULE.fullmatch(text)
    if found is None or len(tensors) != 2:
        return None
    one, other, result = found.groups()
    return (tensors[0], tensors[1]) if one[0] != other[0] and {one[0], other[0]} <= set(result) else None


def _turned(node: ast.expr) -> ast.expr | None:
    """What is turned: `x.t()`, `x.T`, `x.transpose(0, 1)`, also as a tensor of its own: `x.t().contiguous()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COPYING:
        node = node.func.value
    if isinstance(node, ast.Attribute):
        return node.value if node.attr == "T" else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    dimensions = sorted(str(number(argument)) for argument in node.args)
    is_turned = node.func.attr == "t" or (node.func.attr in ("transpose", "permute") and dimensions == ["0", "1"])
    return node.func.value if is_turned else None


def _spread(node: ast.expr, at: int) -> ast.expr | None:
    """What gets a dimension at a place: `x.unsqueeze(1)`, `x[:, None]`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "unsqueeze":
        return node.func.value if [number(argument) for argument in node.args] == [at] else None
    if not isinstance(node, ast.Subscript):
        return None
    places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    written = [ast.unparse(place) for place in places[: at + 1]]
    return node.value if written == [":"] * at + ["None"] else None
