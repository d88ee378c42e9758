"""Rows of a batch that a model compares with each other in its forward: `image @ text.t()` of two encoders' features.

Only what is certain is told: a matrix of all rows by all rows, of two tensors that the model computes from what it is
given. `t()` and `T` turn matrices alone, so their first dimension is that of the batch; weights (`x @ self.codes.t()`)
and parts of one sample (`x[i] @ y[i].t()`) are no such tensors.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import arguments
from migrate.programs.training.comparisons import factors
from migrate.programs.values.place import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function

#: Methods that fold a dimension away, or take from it: not of the batch, where they are told another one.
_FOLDING = frozenset("mean sum max min amax amin squeeze select narrow index_select cumsum softmax norm".split())
_ARITHMETIC = (ast.Div, ast.Mult, ast.Add, ast.Sub)


def compared_inside(facts: Facts, forwards: Iterable[Function]) -> Iterator[ast.expr]:
    """The first comparison in each forward."""
    for forward in forwards:
        given = _Given(facts, forward)
        products = (node for node in facts.own(forward) if isinstance(node, (ast.BinOp, ast.Call)))
        compared = (p for p in products if (sides := factors(p)) and all(given.comes_to(side) for side in sides))
        yield from sorted(compared, key=lambda node: (node.lineno, node.col_offset))[:1]


class _Given:
    """What comes from the arguments of one forward, with a row for each sample."""

    def __init__(self, facts: Facts, forward: Function) -> None:
        names = forward.parameter_names
        self._itself, self._parameters = "".join(names[:1]), names[1:]
        self._assigned = [node for node in facts.own(forward) if isinstance(node, ast.Assign)]

    def comes_to(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether an expression is computed from what the model is given, row by row as far as it shows."""
        if isinstance(node, ast.Name):
            values = list(self._values(node.id)) if node.id not in seen else []
            is_given = node.id in self._parameters and not values
            return is_given or (bool(values) and all(self.comes_to(each, seen | {node.id}) for each in values))
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, _ARITHMETIC) and self.comes_to(node.left, seen)
        if isinstance(node, ast.Attribute):  # `outputs.last_hidden_state`
            return not self._is_own(node) and self.comes_to(node.value, seen)
        if isinstance(node, ast.Subscript):
            return self._keeps_rows(node) and self.comes_to(node.value, seen)
        return isinstance(node, ast.Call) and self._gives(node, seen)

    def _values(self, name: str) -> Iterator[ast.expr]:
        for node in self._assigned:
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    yield node.value
                elif isinstance(target, ast.Tuple):
                    at = [i for i, each in enumerate(target.elts) if isinstance(each, ast.Name) and each.id == name]
                    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] * len(target.elts)
                    yield from (parts[i] for i in at if i < len(parts))

    def _gives(self, call: ast.Call, seen: frozenset[str]) -> bool:
        """`self.encoder(x)`, `F.normalize(x)`, `x.mean(1)`."""
        func = call.func
        if isinstance(func, ast.Attribute) and self.comes_to(func.value, seen):
            return func.attr not in _FOLDING or _is_told_another(call)
        return any(self.comes_to(each, seen) for each in arguments(call)[: None if self._is_own(func) else 1])

    def _is_own(self, node: ast.expr) -> bool:
        """Whether something is the model's own: `self.encoder`, `self.encoders["text"].layer`."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return isinstance(node, ast.Name) and node.id == self._itself

    def _keeps_rows(self, node: ast.Subscript) -> bool:
        """`x[:, 0]`, `batch["image"]`, and a part of what a layer gives: `self.encoder(x)[0]`."""
        if isinstance(node.slice, ast.Tuple):
            return ast.unparse(node.slice.elts[0]) == ":"
        is_key = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        made = [node.value] if not isinstance(node.value, ast.Name) else [*self._values(node.value.id)]
        return is_key or (bool(made) and all(isinstance(each, ast.Call) and self._is_own(each.func) for each in made))


def _is_told_another(call: ast.Call) -> bool:
    """`x.mean(1)`, `x.sum(dim=-1)`: a dimension that is not the first."""
    told = [number(each) for each in arguments(call)[:1]]
    return bool(told) and told[0] not in (0, None)
