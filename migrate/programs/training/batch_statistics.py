"""Losses that take a statistic of the batch and go on with it: each process takes that of its own rows.

    loss = torch.sqrt(criterion(output, y))          # the root of a mean
    loss = torch.log(1 + parts.sum(0)).mean()        # of a sum over the samples
    loss = torch.topk(losses, k)[0].mean()           # the largest of the batch
    rows = (output - output.mean(0)) / output.std(0)
    step = torch.autograd.grad(criterion(output, y), weights, create_graph=True)

The mean over N processes of such a loss is not that of the whole batch. Only what is certain is told: what is taken
over the samples, of tensors with one row for each.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, only, roles
from migrate.analysis.syntax import argument_at, walk
from migrate.analysis.units import Function
from migrate.programs.training.reductions import is_loss
from migrate.programs.training.sample_rows import first_of_each, name_of
from migrate.programs.values.place import number
from migrate.programs.values.reduced import made_as, told
from migrate.programs.values.sources import called_by_name, passed

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.training.sample_rows import SampleRows

#: Made of a mean, they give another than the mean of what they would make of each row.
_BENDING = frozenset("sqrt rsqrt log log1p log2 log10 exp pow square abs relu clamp clamp_ sigmoid tanh".split())
#: Fold the rows of a batch in a way that no mean of parts gives, with the place of their dimension among the arguments.
_FOLDING = {"norm": 1, "vector_norm": 1, "quantile": 1, "nanquantile": 1} | dict.fromkeys(
    "std var max min amax amin median prod logsumexp".split(), 0
)
#: What a process has a share of as it is, and what goes on with it does not.
_MEAN = frozenset({"mean"})
_SUMS = _MEAN | {"sum"}
#: Find places or values by the order of all that they are given.
_RANKING = frozenset("topk sort argsort kthvalue".split())
#: Leave each number of a tensor what it is.
_KEEPING = frozenset("detach clone float double cpu contiguous".split())


class BatchStatistics:
    """The statistics of a batch that one training loop's losses go on with."""

    def __init__(self, facts: Facts, rows: SampleRows) -> None:
        self._facts = facts
        self._rows = rows

    def each(self) -> list[ast.expr]:
        """The first in each function, and in the loop itself."""
        return first_of_each(self._facts, filter(self._goes_on, self._rows.parts))

    def _goes_on(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp):
            is_power = isinstance(node.op, ast.Pow) and number(node.right) not in (None, 1)
            return self._is_mean(node.left, folds=_SUMS) if is_power else self._is_centred(node)
        if not isinstance(node, ast.Call) or not (operands := self._operands(node)):
            return False
        name, of = name_of(node), operands[0]
        if "torch.autograd.grad" in called_by_name(self._facts, node):
            return self._is_mean(of) and not self._is_of_one(of)
        if name in _BENDING:
            return self._is_mean(of, folds=_SUMS)
        if name in _RANKING:
            return self._is_number_each(of)
        return name in _FOLDING and self._folds(node, _FOLDING[name]) and not self._is_taken_off(node, of)

    def _is_centred(self, node: ast.BinOp) -> bool:
        """`rows - rows.mean(0)`."""
        return isinstance(node.op, ast.Sub) and self._has_rows(node.left) and self._is_mean(node.right)

    def _is_taken_off(self, node: ast.Call, of: ast.expr) -> bool:
        """`x - x.max()`, before an `exp`: what comes out is the same whatever is taken off."""
        above = self._facts.tree(node).parents[node]
        return isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub) and ast.dump(above.left) == ast.dump(of)

    def _operands(self, call: ast.Call) -> list[ast.expr]:
        """What a function or method of a tensor works on, the tensor first; empty for one of the project's own."""
        if self._facts.targets(call):
            return []
        if self._is_function(call):
            return call.args
        return [call.func.value, *call.args] if isinstance(call.func, ast.Attribute) else []

    def _is_function(self, call: ast.Call) -> bool:
        return any(name.startswith("torch.") for name in called_by_name(self._facts, call))

    def _folds(self, call: ast.Call, at: int) -> bool:
        """Whether a call folds the rows of its tensor: no dimension is given, or that of the samples."""
        given, of = argument_at(call, at + self._is_function(call), "dim", "axis"), self._operands(call)[0]
        place = 0 if self._is_number_each(of) else self._rows.place(of)
        return place is not None and (given is None or number(given) == place)

    def _is_mean(self, node: ast.expr, depth: int = 4, folds: frozenset[str] = _MEAN) -> bool:
        """Whether an expression is a mean over the rows, or made of such ones and what all batches have."""
        if depth == 0:
            return False
        if isinstance(node, ast.Name):
            given = self._rows.assigned(node)
            return bool(given) and all(self._is_mean(value, depth - 1, folds) for value in given)
        if isinstance(node, ast.BinOp):
            means = [self._is_mean(side, depth - 1, folds) for side in (node.left, node.right)]
            others = [s for s, is_mean in zip((node.left, node.right), means, strict=True) if not is_mean]
            return any(means) and not any(roles(self._facts.values(other)) & FROM_LOADER for other in others)
        if not isinstance(node, ast.Call):
            return False
        if name_of(node) in folds:
            return bool(self._operands(node)) and self._folds(node, 0)
        return self._is_mean_loss(node)

    def _is_of_one(self, node: ast.expr, depth: int = 4) -> bool:
        """Whether an expression may be of one sample, `criterion(net(tasks[i]), labels[i])`: that has its own mean."""
        for inner in walk(node):
            if isinstance(inner, ast.Subscript) and isinstance(inner.slice, (ast.Name, ast.Constant)):
                if not isinstance(getattr(inner.slice, "value", None), str):
                    return True
            elif isinstance(inner, ast.Name) and depth:
                given = self._rows.assigned(inner) or self._passed(inner)
                if any(self._is_of_one(each, depth - 1) for each in given):
                    return True
        return False

    def _passed(self, name: ast.Name) -> list[ast.expr]:
        """What the callers of a function pass as the parameter that a name is."""
        unit = self._facts.unit(name)
        if not isinstance(unit, Function) or name.id not in unit.parameter_names:
            return []
        given = (passed(call, unit, name.id) for call in self._facts.callers(unit))
        return [each for each in given if each is not None]

    def _is_mean_loss(self, call: ast.Call) -> bool:
        values = self._facts.values(call)  # none in the forward of a loss, which nothing has run
        return self._reduction(call) == "mean" and (not values or only(values, Role.STATISTIC))

    def _reduction(self, call: ast.Call) -> str | None:
        """How a loss is reduced that is called; None: it is no loss, or that is not known."""
        made = made_as(self._facts, call.func)
        if not any(is_loss(name) for each in (call, *made) for name in called_by_name(self._facts, each)):
            return None
        given = {keyword.arg: keyword.value for keyword in reversed(told(self._facts, call))}
        if not given.keys().isdisjoint({"reduce", "size_average", None}):
            return None
        return str(number(given["reduction"])) if "reduction" in given else "mean"

    def _are_rows(self, node: ast.expr) -> bool:
        return self._rows.are(node) or self._is_number_each(node)

    def _has_rows(self, node: ast.expr) -> bool:
        return self._is_number_each(node) or self._rows.place(node) is not None

    def _is_number_each(self, node: ast.expr, depth: int = 4) -> bool:
        """Whether an expression certainly has one number for each sample, or each of its places: `losses.view(-1)`."""
        if depth == 0:
            return False
        if isinstance(node, ast.Name):
            given = self._rows.assigned(node)
            return bool(given) and all(self._is_number_each(value, depth - 1) for value in given)
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING:
            return self._is_number_each(node.func.value, depth)
        flattened = node.func.value if isinstance(node.func, ast.Attribute) and _flattens(node) else None
        return self._reduction(node) == "none" if flattened is None else self._are_rows(flattened)


def _flattens(call: ast.Call) -> bool:
    """`x.view(-1)`, `x.reshape(-1)`, `x.flatten()`."""
    name, given = name_of(call), [number(argument) for argument in call.args]
    return (name in ("view", "reshape") and given == [-1]) or (name == "flatten" and not given)
