"""Functions that make a row of each sample: `xs, ys = zip(*rows)`, `return torch.stack(xs), torch.tensor(ys)`.

Nothing in a row goes by the other samples, as it does where these are brought to one length.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_docstring, walk

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function

_SEQUENCES = frozenset({"builtins.tuple", "builtins.list"})
_MAKING = frozenset({"torch.tensor", "torch.as_tensor", "torch.LongTensor", "torch.FloatTensor"})


def stacks(facts: Facts, function: Function) -> bool:
    """Whether a function does nothing but stack the samples that it is handed."""
    return _Stacked(facts, function).is_all()


class _Stacked:
    """What the names of a function hold that is handed the samples of a batch."""

    def __init__(self, facts: Facts, function: Function) -> None:
        self._facts = facts
        self._body = [statement for statement in function.body if not is_docstring(statement)]
        given = [each.arg for each in function.positional if each is not function.itself]
        self._samples = given[0] if len(given) == 1 else None
        self._columns: set[str] = set()  # names of what has an item for each sample
        self._tensors: set[str] = set()  # names of what has a row for each sample

    def is_all(self) -> bool:
        """Whether that is all that the function does."""
        last = self._body[-1] if self._body else None
        if not isinstance(last, ast.Return) or last.value is None:
            return False
        if not all(self._is_understood(statement) for statement in self._body[:-1]):
            return False
        parts = last.value.elts if isinstance(last.value, (ast.Tuple, ast.List)) else [last.value]
        return all(self._is_tensor(part) for part in parts)

    def _is_understood(self, statement: ast.stmt) -> bool:
        """Takes note of what a statement gives names to; whether it does nothing else."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        target, value = statement.targets[0], statement.value
        names = {node.id for node in walk(target) if isinstance(node, ast.Name)}
        is_column = isinstance(target, ast.Tuple) and self._are_columns(value)
        is_column = is_column or (isinstance(target, ast.Name) and self._is_column(value))
        is_tensor = isinstance(target, ast.Name) and self._is_tensor(value)
        self._columns, self._tensors = self._columns - names, self._tensors - names
        self._columns |= names if is_column else set()
        self._tensors |= names if is_tensor else set()
        return (is_column or is_tensor) and self._samples not in names

    def _are_columns(self, node: ast.expr) -> bool:
        """`zip(*samples)`, `tuple(zip(*samples))`."""
        match node:
            case ast.Call(args=[ast.Starred(ast.Name(name))], keywords=[]):
                return name == self._samples and self._facts.called(node) == {"builtins.zip"}
            case ast.Call(args=[inner], keywords=[]) if self._facts.called(node) & _SEQUENCES:
                return self._are_columns(inner)
        return False

    def _is_column(self, node: ast.expr) -> bool:
        """A name of one, or `[sample[0] for sample in samples]`."""
        match node:
            case ast.Name(name):
                return name in self._columns
            case ast.ListComp(
                ast.Subscript(ast.Name(item), ast.Constant()),
                [ast.comprehension(ast.Name(each), ast.Name(samples), [])],
            ):
                return item == each and samples == self._samples
        return False

    def _is_tensor(self, node: ast.expr) -> bool:
        """A name of one, `torch.stack(xs)`, `torch.tensor(ys)`."""
        match node:
            case ast.Name(name):
                return name in self._tensors
            case ast.Call(args=[column]) | ast.Call(args=[column, ast.Constant(0)]) if self._is_column(column):
                made = self._facts.called(node)
                said = {each.arg: each.value for each in node.keywords}
                first = said.pop("dim", ast.Constant(0))
                is_first = isinstance(first, ast.Constant) and first.value == 0
                is_stack = made == {"torch.stack"} and not said
                return is_first and (is_stack or (made <= _MAKING and len(node.args) == 1 and said.keys() <= {"dtype"}))
        return False
