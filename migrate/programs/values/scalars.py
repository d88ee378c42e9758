"""Which expressions are one floating-point number of a batch, so that its mean over the processes says the same."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.programs.values.assigned import assigned
from migrate.programs.values.numbers import is_number
from migrate.programs.values.reduced import told

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


class Scalar(Enum):
    """What holds the number."""

    FLOAT = "a Python float"
    TENSOR = "a tensor of one element"
    WHOLE = "a whole number of Python"


_SAME_KIND = frozenset("detach cpu cuda clone to data float double mean".split())
_MEANS = frozenset({"numpy.mean", "numpy.average", "statistics.mean", "builtins.float"})
_OF_MANY = frozenset({"builtins.min", "builtins.max", "builtins.abs", "builtins.round"})
_LOSSES = ("torch.nn.functional.", "torch.nn.modules.loss.")
_DEEPEST = 4


class Scalars:
    """The kinds of the expressions of one training loop."""

    def __init__(self, facts: Facts, loop: LoopFact) -> None:
        self._facts = facts
        starts = {
            call: unscaled(facts, call.func.value) for call in loop.backwards if isinstance(call.func, ast.Attribute)
        }
        self._losses = {start.id for start in starts.values() if isinstance(start, ast.Name)}
        self._own_losses = {
            start.id for call, start in starts.items() if isinstance(start, ast.Name) and facts.unit(call) is loop.unit
        }

    def kind(self, node: ast.expr, depth: int = _DEEPEST) -> Scalar | None:
        """What holds the number that an expression is; None: it is not known to be one."""
        if depth < 0:
            return None
        if isinstance(node, ast.Constant):
            return {int: Scalar.WHOLE, float: Scalar.FLOAT}.get(type(node.value))
        if isinstance(node, ast.BinOp):
            return self._combined(node, depth)
        if isinstance(node, ast.UnaryOp):
            return self.kind(node.operand, depth)
        if isinstance(node, ast.IfExp):
            return one(self.kind(side, depth) for side in (node.body, node.orelse))
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        if isinstance(node, ast.Attribute) and node.attr == "data":
            return self.kind(node.value, depth)
        if isinstance(node, ast.Name) and node.id in self._losses:
            return None if self._holds_rows(node) else Scalar.TENSOR
        if isinstance(node, ast.Name) and (kind := self._named(node, depth)):
            return kind
        return Scalar.WHOLE if is_number(self._facts, node) else None

    def _combined(self, node: ast.BinOp, depth: int) -> Scalar | None:
        return _of(node.op, self.kind(node.left, depth), self.kind(node.right, depth))

    def _called(self, node: ast.Call, depth: int) -> Scalar | None:
        names = self._facts.called(node)
        if names & _MEANS:
            return Scalar.FLOAT
        if names & _OF_MANY and node.args:
            return one(self.kind(argument, depth) for argument in node.args[: 1 if "builtins.round" in names else None])
        if targets := self._facts.targets(node):
            given = [n.value for unit in targets for n in self._facts.own(unit) if isinstance(n, ast.Return)]
            return one(self.kind(value, depth - 1) if value is not None else None for value in given)
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "item":
                return Scalar.FLOAT if self._is_floating(node.func.value, depth) else Scalar.WHOLE
            if node.func.attr == "mean" and not node.args and not node.keywords:
                return Scalar.TENSOR if roles(self._facts.values(node)) == {Role.STATISTIC} else None
            if node.func.attr in _SAME_KIND:
                return self.kind(node.func.value, depth)
        if self._is_loss(node):
            return Scalar.TENSOR
        return Scalar.WHOLE if is_number(self._facts, node) else None

    def is_loss(self, name: str, value: ast.expr) -> bool:
        """Whether the loop's own function starts gradients at what it gives a name: one number, and no sum."""
        return name in self._own_losses and not self._sums(value) and not self._holds_rows(value)

    def is_mean(self, node: ast.expr, depth: int = _DEEPEST) -> bool:
        """Whether a number is a mean over the batch, as a loss is, so that a share of the batch has one as large."""
        if depth < 0:
            return False
        if isinstance(node, ast.Name):
            given = list(assigned(self._facts, node))
            if node.id in self._losses:
                return not any(value is not None and self._sums(value) for value in given) and not self._holds_rows(
                    node
                )
            return bool(given) and all(value is not None and self.is_mean(value, depth - 1) for value in given)
        if isinstance(node, ast.Attribute):
            return node.attr == "data" and self.is_mean(node.value, depth)
        if isinstance(node, ast.Subscript):
            return self.is_mean(node.value, depth)
        if isinstance(node, ast.BinOp):
            own = [side for side in (node.left, node.right) if roles(self._facts.values(side)) & FROM_LOADER]
            is_product = isinstance(node.op, (ast.Mult, ast.Div)) and len(own) > 1
            return bool(own) and not is_product and all(self.is_mean(side, depth) for side in own)
        if not isinstance(node, ast.Call):
            return False
        if "builtins.float" in self._facts.called(node) and node.args:
            return self.is_mean(node.args[0], depth)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_KIND | {"item", "numpy", "tolist"}:
            return node.func.attr == "mean" or self.is_mean(node.func.value, depth)
        return self._is_loss(node) and not self._sums(node)

    def is_sum(self, node: ast.expr, depth: int = _DEEPEST) -> bool:
        """Whether a number grows with the batch: how many samples there are, how many are right, a mean times those."""
        if depth < 0:
            return False
        if isinstance(node, ast.Name):
            given = list(assigned(self._facts, node))
            return bool(given) and all(value is not None and self.is_sum(value, depth - 1) for value in given)
        if isinstance(node, ast.Attribute):
            return node.attr == "data" and self.is_sum(node.value, depth)
        if isinstance(node, ast.Subscript):
            return ast.unparse(node).endswith((".shape[0]", ".size()[0]")) or self.is_sum(node.value, depth)
        if isinstance(node, ast.BinOp):
            own = [side for side in (node.left, node.right) if roles(self._facts.values(side)) & FROM_LOADER]
            grows = [self.is_sum(side, depth) for side in own]
            if isinstance(node.op, ast.Mult):
                return grows.count(True) == 1
            return bool(own) and all(grows) and (not isinstance(node.op, ast.Div) or own == [node.left])
        return isinstance(node, ast.Call) and self._call_is_sum(node, depth)

    def _call_is_sum(self, node: ast.Call, depth: int) -> bool:
        names = self._facts.called(node)
        if names & {"builtins.float", "builtins.int"} and node.args:
            return self.is_sum(node.args[0], depth)
        if "builtins.len" in names:
            return bool(roles(self._facts.values(node)) & FROM_LOADER)
        if not isinstance(node.func, ast.Attribute):
            return False
        if node.func.attr in _SAME_KIND | {"item", "numpy", "tolist"} and node.func.attr != "mean":
            return self.is_sum(node.func.value, depth)
        if node.func.attr == "size":
            return [ast.unparse(argument) for argument in node.args] == ["0"]
        return node.func.attr == "sum" and len(node.args) == int("torch.sum" in names) and not node.keywords

    def _sums(self, value: ast.expr) -> bool:
        """Whether a loss is a sum over the batch: by a method, or by what its loss function was told."""
        calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
        made = [v.origin for c in calls for v in self._facts.values(c.func) if v.role is Role.CRITERION]
        calls += [origin for origin in made if isinstance(origin, ast.Call)]
        return any(
            (isinstance(call.func, ast.Attribute) and call.func.attr == "sum")
            or any(ast.unparse(k) in ("reduction='sum'", "size_average=False") for k in call.keywords)
            for call in calls
        )

    def _is_loss(self, call: ast.Call) -> bool:
        """Whether a call of a loss function gives one number."""
        is_loss = Role.CRITERION in roles(self._facts.values(call.func)) or any(
            name.startswith(_LOSSES) and ("loss" in name or "entropy" in name) for name in self._facts.called(call)
        )
        return is_loss and not self._keeps_rows(call) and roles(self._facts.values(call)) == {Role.STATISTIC}

    def _keeps_rows(self, call: ast.Call) -> bool:
        """Whether a loss function was told to give a number for each sample: `reduction="none"`, `reduce=False`."""
        return any(ast.unparse(each) in ("reduction='none'", "reduce=False") for each in told(self._facts, call))

    def _holds_rows(self, node: ast.expr, depth: int = _DEEPEST) -> bool:
        """Whether what a loss function gives still has a number for each sample here: its mean is taken below."""
        if isinstance(node, ast.Name) and depth > 0:
            given = [value for value in assigned(self._facts, node) if value is not None]
            above = [value for value in given if value.lineno < node.lineno] or given
            last = max(above, key=lambda value: (value.lineno, value.col_offset), default=None)
            return last is not None and self._holds_rows(last, depth - 1)
        if isinstance(node, ast.BinOp):
            return any(self._holds_rows(side, depth) for side in (node.left, node.right))
        if isinstance(node, ast.Attribute):
            return node.attr == "data" and self._holds_rows(node.value, depth)
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_KIND - {"mean"}:
            return self._holds_rows(node.func.value, depth)
        return self._keeps_rows(node)

    def _is_floating(self, node: ast.expr, depth: int) -> bool:
        """Whether a tensor holds floating-point numbers."""
        if self.kind(node, depth) is Scalar.TENSOR:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in ("float", "double", "mean") or (
                node.func.attr in ("sum", "detach", "cpu") and self._is_floating(node.func.value, depth)
            )
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.Div) or any(self._is_floating(s, depth) for s in (node.left, node.right))
        if isinstance(node, ast.Name) and depth > 0:
            given = list(assigned(self._facts, node))
            return bool(given) and all(value is not None and self._is_floating(value, depth - 1) for value in given)
        return False

    def _named(self, node: ast.Name, depth: int) -> Scalar | None:
        """Of a name: what all that it is given have in common; `best = 0` may become a float."""
        given = [v for v in assigned(self._facts, node) if v is None or node.id not in _names(v)]
        kinds = [self.kind(value, depth - 1) if value is not None else None for value in given]
        grown = [v for v in assigned(self._facts, node) if v is not None and node.id in _names(v)]
        kinds += [self.grown(value, node.id, depth - 1) for value in grown]
        return one(kinds)

    def grown(self, value: ast.expr, name: str, depth: int = _DEEPEST) -> Scalar | None:
        """`ema = 0.9 * ema + 0.1 * loss.item()`: the kind of what is put to a name that is a number itself."""
        if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(value) == name:
            return Scalar.WHOLE
        if isinstance(value, ast.BinOp):
            return _of(value.op, self.grown(value.left, name, depth), self.grown(value.right, name, depth))
        if isinstance(value, ast.IfExp):
            return one(self.grown(side, name, depth) for side in (value.body, value.orelse))
        if isinstance(value, ast.Call) and self._facts.called(value) & _OF_MANY:
            return one(self.grown(argument, name, depth) for argument in value.args)
        return self.kind(value, depth)


def unscaled(facts: Facts, node: ast.expr) -> ast.expr:
    """The loss that a scaler is handed, of `scaler.scale(loss)`; else the node itself."""
    if isinstance(node, ast.Call) and node.args and Role.SCALER in roles(facts.receiver(node)):
        return node.args[0]
    return node


def _of(operator: ast.operator, *sides: Scalar | None) -> Scalar | None:
    """What arithmetic on two of these gives."""
    if None in sides:
        return None
    if Scalar.TENSOR in sides:
        return Scalar.TENSOR
    return Scalar.FLOAT if Scalar.FLOAT in sides or isinstance(operator, ast.Div) else Scalar.WHOLE


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def one(kinds: Iterable[Scalar | None]) -> Scalar | None:
    """The kind of what may be any of some; whole numbers beside floats are floats."""
    found = set(kinds)
    if not found or None in found:
        return None
    if Scalar.TENSOR in found:
        return Scalar.TENSOR
    return Scalar.FLOAT if Scalar.FLOAT in found else Scalar.WHOLE
