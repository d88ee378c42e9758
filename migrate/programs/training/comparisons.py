"""Losses that compare the rows of a batch with each other, as contrastive ones do: each process has those of its own.

Only what is certain is told: a matrix of all rows by all rows (`x @ y.t()`), or rows that are spread against each other
(`x.unsqueeze(1) - y.unsqueeze(0)`), of tensors with one row a sample, from which the loss is computed. `torch.cdist`
may as well compare points within each sample.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import MOVES
from migrate.analysis.roles import ROWS
from migrate.analysis.syntax import argument_at, rows_of
from migrate.analysis.units import Function
from migrate.programs.training.loss_parts import LossParts
from migrate.programs.values.place import number
from migrate.programs.values.sources import called_by_name, received

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact

_PRODUCTS = frozenset({"mm", "matmul", "addmm", "addmm_"})
#: Functions that put tensors behind each other.
JOINING = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
_SCALING = frozenset({"torch.nn.functional.normalize", "torch.div", "torch.mul"})
#: Methods that leave the rows of a tensor what they are.
_KEEPING = frozenset("float double half contiguous detach clone div mul".split()) | MOVES
#: Cut a tensor into pieces, each of which has rows of samples.
_SPLITTING = frozenset({"torch.split", "torch.chunk", "torch.tensor_split"})
_PIECES = frozenset({"split", "chunk", "tensor_split"})
_FIRST = (0, 1)
_RULE = re.compile(r"([a-zA-Z]+),([a-zA-Z]+)->([a-zA-Z]*)")  # of two tensors


class Comparisons:
    """The comparisons that one training loop's losses are computed from."""

    def __init__(self, facts: Facts, loop: LoopFact, models: Collection[ast.AST]) -> None:
        self._facts = facts
        self._loop = loop
        self._parts = LossParts(facts, loop, models)
        self._given: dict[Function, set[str]] = {}  # parameters that are given one row a sample

    def each(self) -> list[ast.expr]:
        """The first in each function, and in the loop itself."""
        found: dict[Unit, ast.expr] = {}
        for node in sorted(self._found(), key=lambda each: (each.lineno, each.col_offset)):
            found.setdefault(self._facts.unit(node), node)
        return list(found.values())

    def _found(self) -> list[ast.expr]:
        parts = self._parts.each()
        for call in (node for node in parts if isinstance(node, ast.Call)):
            for target in self._parts.entered(call):
                rows = {name for name, value in received(call, target).items() if self._is_rows(value)}
                self._given.setdefault(target, set()).update(rows)
        return [node for node in parts if self._compares(node)]

    # --- one row a sample -------------------------------------------------------------------------------------------

    def _is_rows(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether an expression certainly is a tensor with one row a sample."""
        values = self._facts.values(node)
        if values and all(value.role in ROWS and value.origin in self._loop.loaders for value in values):
            return True
        if isinstance(node, ast.Name):
            unit, given = self._facts.unit(node), [*self._parts.assigned(node), *self._split(node)]
            is_parameter = isinstance(unit, Function) and node.id in self._given.get(unit, ())
            if node.id in seen or not given:
                return is_parameter
            return all(self._is_rows(value, seen | {node.id}) for value in given)
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, (ast.Div, ast.Mult)) and self._is_rows(node.left, seen)
        if isinstance(node, ast.Subscript):  # `features[:, 0]`
            is_column = isinstance(node.slice, ast.Tuple) and ast.unparse(node.slice.elts[0]) == ":"
            return is_column and self._is_rows(node.value, seen)
        return isinstance(node, ast.Call) and self._gives_rows(node, seen)

    def _gives_rows(self, call: ast.Call, seen: frozenset[str]) -> bool:
        names = called_by_name(self._facts, call)
        if names & JOINING and call.args:  # under each other, or side by side
            return all(self._is_rows(each, seen) for each in self._joined(call.args[0]))
        if "torch.stack" in names and call.args:  # `torch.stack([a, b], dim=1)`: the views of each sample
            return _dimension(call) != 0 and all(self._is_rows(each, seen) for each in self._joined(call.args[0]))
        if names & (_SCALING | _SPLITTING) and call.args:
            return self._is_rows(call.args[0], seen)
        if not isinstance(call.func, ast.Attribute):
            return False
        return _keeps_rows(call, call.func) and self._is_rows(call.func.value, seen)

    def _split(self, name: ast.Name) -> list[ast.expr]:
        """What is cut into pieces of which a name is one: `a, b = torch.split(x, n)`."""
        bindings = self._facts.bindings_in(self._facts.unit(name))
        given = [each.statement for each in bindings if each.target == name.id]
        calls = [each.value for each in given if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call)]
        return [each for each in calls if called_by_name(self._facts, each) & _SPLITTING or _name(each) in _PIECES]

    def _joined(self, node: ast.expr) -> list[ast.expr]:
        """The tensors that are joined: those of a list, or the views of each sample: `torch.unbind(x, dim=1)`."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return node.elts
        is_unbound = isinstance(node, ast.Call) and "torch.unbind" in called_by_name(self._facts, node)
        return node.args[:1] if isinstance(node, ast.Call) and is_unbound and _dimension(node) == 1 else [node]

    # --- rows by rows -----------------------------------------------------------------------------------------------

    def _compares(self, node: ast.expr) -> bool:
        if pair := factors(node, strictly=False) or _summed(node):
            return all(map(self._is_rows, pair))
        sides = _sides(node)
        spread = [[inner for side in sides if (inner := _spread(side, at)) is not None] for at in _FIRST]
        return all(len(found) == 1 and self._is_rows(found[0]) for found in spread)


def factors(node: ast.expr, *, strictly: bool = True) -> tuple[ast.expr, ast.expr] | None:
    """The tensors whose rows a product sets against each other: `x @ y.t()`.

    `strictly`: nothing but matrices can be turned in this way.
    """
    sides = _sides(node)
    is_product = isinstance(getattr(node, "op", None), ast.MatMult) or _name(node) in _PRODUCTS
    turned = _turned(sides[-1]) if is_product and len(sides) > 1 else None
    if turned is None or (strictly and _name(sides[-1]) == "transpose"):
        return None
    return sides[-2], turned


def _sides(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if not isinstance(node, ast.Call):
        return []
    return [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args]


def _summed(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The same of `torch.einsum("ik,jk->ij", x, y)`."""
    rule, *tensors = node.args if isinstance(node, ast.Call) and _name(node) == "einsum" and node.args else [node]
    text = rule.value.replace(" ", "") if isinstance(rule, ast.Constant) and isinstance(rule.value, str) else ""
    found = _RULE.fullmatch(text)
    if found is None or len(tensors) != 2:
        return None
    one, other, result = found.groups()
    return (tensors[0], tensors[1]) if one[0] != other[0] and {one[0], other[0]} <= set(result) else None


def _name(node: ast.expr) -> str:
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _turned(node: ast.expr) -> ast.expr | None:
    """What is turned: `x.t()`, `x.T`, `x.transpose(0, 1)`."""
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


def _dimension(call: ast.Call, at: int = 1) -> object:
    given = argument_at(call, at, "dim", "axis")
    return number(given) if given is not None else 0


def _keeps_rows(call: ast.Call, func: ast.Attribute) -> bool:
    """Whether what a method gives has the rows of its tensor: `x.float()`, `x.unsqueeze(1)`."""
    if func.attr in ("view", "reshape"):
        return _keeps_first(call)
    return func.attr in _KEEPING | _PIECES or (func.attr == "unsqueeze" and _dimension(call, 0) != 0)


def _keeps_first(call: ast.Call) -> bool:
    """`x.view(x.size(0), -1)`: as many rows."""
    assert isinstance(call.func, ast.Attribute)
    return bool(call.args) and ast.unparse(call.args[0]) in rows_of(ast.unparse(call.func.value))
