"""What of a loss certainly is a tensor with one row a sample, in functions and in the `forward` of losses, too."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import MOVES
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
#: Methods that leave the rows of a tensor what they are.
_KEEPING = frozenset("float double half contiguous detach clone div mul".split()) | MOVES
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
            return isinstance(node.op, (ast.Div, ast.Mult)) and self.are(node.left, seen)
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
        if names & (_SCALING | _SPLITTING) and call.args:
            return self.are(call.args[0], seen)
        if not isinstance(call.func, ast.Attribute):
            return False
        return _keeps_rows(call, call.func) and self.are(call.func.value, seen)

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


def _keeps_rows(call: ast.Call, func: ast.Attribute) -> bool:
    """Whether what a method gives has the rows of its tensor: `x.float()`, `x.unsqueeze(1)`."""
    if func.attr in ("view", "reshape"):
        return _keeps_first(call)
    return func.attr in _KEEPING | _PIECES or (func.attr == "unsqueeze" and dimension(call, 0) != 0)


def _keeps_first(call: ast.Call) -> bool:
    """`x.view(x.size(0), -1)`: as many rows."""
    assert isinstance(call.func, ast.Attribute)
    return bool(call.args) and ast.unparse(call.args[0]) in rows_of(ast.unparse(call.func.value))
