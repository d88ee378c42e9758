"""What of a loss certainly is a tensor with one row a sample, in functions and in the `forward` of losses, too."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.arguments import turns
from migrate.analysis.known.tensors import MOVES, TURNING
from migrate.analysis.roles import ROWS
from migrate.analysis.syntax import argument_at, rows_of
from migrate.analysis.units import Function
from migrate.programs.training.loss_parts import LossParts
from migrate.programs.values.place import number
from migrate.programs.values.sources import called_by_name, received

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact

#: Functions that put tensors behind each other.
JOINING = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})
_SCALING = frozenset({"torch.nn.functional.normalize", "torch.div", "torch.mul"})
#: Make of each number another, or of each row.
_BENDING = frozenset("exp log log1p sqrt square abs relu sigmoid tanh".split())
_BY_ROW = frozenset("linear softmax log_softmax softplus one_hot".split())
_EACH_BY_ITSELF = {f"torch.{name}" for name in _BENDING} | {f"torch.nn.functional.{name}" for name in _BY_ROW}
_EITHER_WAY = (ast.Mult, ast.Add, ast.Sub)
_BY_PLACES = (*_EITHER_WAY, ast.Div)
#: Methods that leave the rows of a tensor what they are.
_KEEPING = frozenset("float double half contiguous detach clone div mul".split()) | _BENDING | MOVES
#: Cut a tensor into pieces, each of which has rows of samples.
_SPLITTING = frozenset({"torch.split", "torch.chunk", "torch.tensor_split"})
_PIECES = frozenset({"split", "chunk", "tensor_split"})


class SampleRows:
    """The tensors with one row a sample among what one training loop's losses are computed from."""

    def __init__(self, facts: Facts, loop: LoopFact, models: Collection[ast.AST]) -> None:
        self._facts = facts
        self._loop = loop
        self._parts = LossParts(facts, loop, models)
        self._given: dict[Function, set[str]] = {}  # parameters that are given one row a sample
        self.parts = self._parts.each()
        for call in (node for node in self.parts if isinstance(node, ast.Call)):
            for target in self._parts.entered(call):
                rows = {name for name, value in received(call, target).items() if self.are(value)}
                self._given.setdefault(target, set()).update(rows)

    def assigned(self, name: ast.Name) -> list[ast.expr]:
        """What a name is given in its function, as far as that is seen."""
        return self._parts.assigned(name)

    def are(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether an expression certainly is a tensor with one row a sample."""
        values = self._facts.values(node)
        if values and all(value.role in ROWS and value.origin in self._loop.loaders for value in values):
            return True
        if isinstance(node, ast.Name):
            unit, given = self._facts.unit(node), [*self._parts.assigned(node), *self._split(node)]
            is_parameter = isinstance(unit, Function) and node.id in self._given.get(unit, ())
            if node.id in seen or not given:
                return is_parameter
            return all(self.are(value, seen | {node.id}) for value in given)
        if isinstance(node, ast.BinOp):
            sides = [node.left, node.right] if isinstance(node.op, _EITHER_WAY) else [node.left]
            return isinstance(node.op, _BY_PLACES) and any(self.are(side, seen) for side in sides)
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub) and self.are(node.operand, seen)
        if isinstance(node, ast.Subscript):  # `features[:, 0]`
            is_column = isinstance(node.slice, ast.Tuple) and ast.unparse(node.slice.elts[0]) == ":"
            return is_column and self.are(node.value, seen)
        return isinstance(node, ast.Call) and self._gives_rows(node, seen)

    def _gives_rows(self, call: ast.Call, seen: frozenset[str]) -> bool:
        names = called_by_name(self._facts, call)
        if names & JOINING and call.args:  # under each other, or side by side
            return all(self.are(each, seen) for each in self._joined(call.args[0]))
        if "torch.stack" in names and call.args:  # `torch.stack([a, b], dim=1)`: the views of each sample
            return dimension(call) != 0 and all(self.are(each, seen) for each in self._joined(call.args[0]))
        if "torch.where" in names:
            return any(self.are(each, seen) for each in call.args[1:])
        if names & (_SCALING | _SPLITTING | _EACH_BY_ITSELF) and call.args:
            return self.are(call.args[0], seen)
        if (turned := self._turned(call)) is not None:
            is_method = turned is not _first_given(call)
            return not turns(name_of(call), call, is_method=is_method) and self.are(turned, seen)
        if not isinstance(call.func, ast.Attribute):
            return False
        return _keeps_rows(call, call.func) and self.are(call.func.value, seen)

    def place(self, node: ast.expr, depth: int = 4) -> int | None:
        """Which dimension of a tensor certainly is the samples: 1 of `x.t()`, 2 of `x.permute(1, 2, 0)`."""
        if depth == 0:
            return None
        if self.are(node):
            return 0
        if isinstance(node, ast.Name):
            places = {self.place(value, depth - 1) for value in self._parts.assigned(node)}
            return places.pop() if len(places) == 1 else None
        turned = self._turned(node)
        inner = self.place(turned, depth - 1) if turned is not None else None
        return None if inner is None else _turned_to(node, inner, is_method=turned is not _first_given(node))

    def _turned(self, node: ast.expr) -> ast.expr | None:
        """What a call turns, or an attribute: `x.transpose(0, 1)`, `torch.permute(x, (1, 0))`, `x.T`."""
        if isinstance(node, ast.Attribute):
            return node.value if node.attr == "T" else None
        if not isinstance(node, ast.Call) or name_of(node) not in TURNING or self._facts.targets(node):
            return None
        if any(name.startswith("torch.") for name in called_by_name(self._facts, node)):
            return _first_given(node)
        return node.func.value if isinstance(node.func, ast.Attribute) else None

    def _split(self, name: ast.Name) -> list[ast.expr]:
        """What is cut into pieces of which a name is one: `a, b = torch.split(x, n)`."""
        bindings = self._facts.bindings_in(self._facts.unit(name))
        given = [each.statement for each in bindings if each.target == name.id]
        calls = [each.value for each in given if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call)]
        return [each for each in calls if called_by_name(self._facts, each) & _SPLITTING or name_of(each) in _PIECES]

    def _joined(self, node: ast.expr) -> list[ast.expr]:
        """The tensors that are joined: those of a list, or the views of each sample: `torch.unbind(x, dim=1)`."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return node.elts
        is_unbound = isinstance(node, ast.Call) and "torch.unbind" in called_by_name(self._facts, node)
        return node.args[:1] if isinstance(node, ast.Call) and is_unbound and dimension(node) == 1 else [node]


def first_of_each(facts: Facts, nodes: Iterable[ast.expr]) -> list[ast.expr]:
    """The first of some expressions in each function, and in the loop itself."""
    found: dict[Unit, ast.expr] = {}
    for node in sorted(nodes, key=lambda each: (each.lineno, each.col_offset)):
        found.setdefault(facts.unit(node), node)
    return list(found.values())


def name_of(node: ast.expr) -> str:
    """The last name of what is called; empty for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def dimension(call: ast.Call, at: int = 1) -> object:
    """The number of the dimension that a call is given; 0 where it is given none."""
    given = argument_at(call, at, "dim", "axis")
    return number(given) if given is not None else 0


def _first_given(node: ast.expr) -> ast.expr | None:
    return node.args[0] if isinstance(node, ast.Call) and node.args else None


def _turned_to(node: ast.expr, place: int, *, is_method: bool) -> int | None:
    """Where a dimension of a tensor stands that a call turns, or an attribute; None if that is not written there."""
    given = node.args[0 if is_method else 1 :] if isinstance(node, ast.Call) else []
    if not given:  # of two dimensions: `x.t()`, `x.T`
        is_whole = isinstance(node, ast.Attribute) or name_of(node) == "t"
        return 1 - place if is_whole and place < _OF_A_MATRIX else None
    dims = [number(each) for one in given for each in (one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one])]
    if name_of(node) == "permute":
        return dims.index(place) if place in dims else None
    if name_of(node) not in _SWAPPING or len(dims) != _OF_A_MATRIX or any(str(dim).startswith("-") for dim in dims):
        return None
    swapped = dict(zip(dims, reversed(dims), strict=True)).get(place, place)
    return swapped if isinstance(swapped, int) else None


_OF_A_MATRIX = 2  # dimensions
#: Swap two dimensions.
_SWAPPING = frozenset("transpose swapaxes swapdims".split())


def _keeps_rows(call: ast.Call, func: ast.Attribute) -> bool:
    """Whether what a method gives has the rows of its tensor: `x.float()`, `x.unsqueeze(1)`."""
    if func.attr in ("view", "reshape"):
        return _keeps_first(call)
    return func.attr in _KEEPING | _PIECES or (func.attr == "unsqueeze" and dimension(call, 0) != 0)


def _keeps_first(call: ast.Call) -> bool:
    """`x.view(x.size(0), -1)`: as many rows."""
    assert isinstance(call.func, ast.Attribute)
    return bool(call.args) and ast.unparse(call.args[0]) in rows_of(ast.unparse(call.func.value))
