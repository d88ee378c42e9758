"""Sums over a batch that are divided further on: by a name, or where a function has given them to.

`def elbo(...): return mse(out, x, reduction="sum"), kl` and `rec, kl = elbo(...)`, `loss = (rec + kl) / len(x)`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, origins
from migrate.analysis.syntax import argument_at
from migrate.analysis.units import Function
from migrate.programs.training.gradients_off import without_gradients
from migrate.programs.values.batch_size import is_size
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

TAKEN_OUT = ("item", "data", "detach", "tolist")
_DEEPEST = 3  # functions that hand a sum on


def trains_nothing(facts: Facts, call: ast.Call) -> bool:
    """Whether gradients are off for a loss, or it is a number at once: `F.cross_entropy(out, y).item()`."""
    parent = facts.tree(call).parents[call]
    return (isinstance(parent, ast.Attribute) and parent.attr in TAKEN_OUT) or without_gradients(facts, call)


def by_size(facts: Facts) -> Divisions:
    """What divides losses by the size of a batch: a sum becomes the mean over what a process has of it."""
    return Divisions(facts, lambda by, divided: is_size(facts, by) or _is_told_size(facts, by, divided))


def _is_told_size(facts: Facts, by: ast.expr, divided: ast.expr) -> bool:
    """Whether a number is what the loaders were told to put into a batch: `args.batch_size`, of one process's, too."""
    if isinstance(by, ast.Constant):  # which nobody changes along with the batch
        return False
    loaders = [facts.source(made) for made in origins(facts.values(divided), *FROM_LOADER)]
    sizes = [argument_at(made, 1, "batch_size") for made in loaders if isinstance(made, ast.Call)]
    return bool(sizes) and all(size is not None and ast.unparse(size) == ast.unparse(by) for size in sizes)


@dataclass(frozen=True)
class Divisions:
    """Where losses are divided by numbers of a kind.

    `counts`: whether the first expression is such a number where it divides the second.
    """

    facts: Facts
    counts: Callable[[ast.expr, ast.expr], bool]

    def reach(self, call: ast.Call, unit: Unit, position: int | None = None, depth: int = _DEEPEST) -> bool:
        """Whether what a call gives is divided: `sum_loss(...) / x.size(0)`, also by a name.

        Where a function hands it on, each of those that train with it must divide; `position`: of what a call gives.
        """
        tree = self.facts.tree(call)
        statement = tree.statement(call)
        if position is None and any(self._divides(node, call, set()) for node in ast.walk(statement)):
            return True
        names = set(_names(statement, position))
        nodes = list(self.facts.own(unit))
        if any(self._is_in_place(node, call, names) for node in nodes):
            return True
        if any(_is_trained_whole(node, names) for node in nodes):
            return False
        handed = {at for node in nodes if isinstance(node, ast.Return) for at in self._handed_on(node, call, names)}
        if handed:
            return isinstance(unit, Function) and depth > 0 and self._by_callers(unit, handed, depth)
        return any(
            isinstance(tree.statement(node), (ast.Return, ast.Assign)) and self._divides(node, call, names)
            for node in nodes
        )

    def _by_callers(self, unit: Function, positions: set[int | None], depth: int) -> bool:
        training = [each for each in self.facts.callers(unit) if not trains_nothing(self.facts, each.node)]
        return bool(training) and all(
            self.reach(each.node, each.caller, position, depth - 1) for each in training for position in positions
        )

    def _divides(self, node: ast.AST, call: ast.Call, names: set[str]) -> bool:
        """Whether a node divides what a call gives, or has given under a name, by such a number."""
        match node:
            case ast.BinOp(left, ast.Div(), by):
                pass
            case ast.Call(func=ast.Attribute(left, "div" | "div_"), args=[by]):
                pass
            case ast.Call(args=[left, by]) if "torch.div" in called_by_name(self.facts, node):
                pass
            case _:
                return False
        if not self.counts(by, left):
            return False
        return _holds(left, call, names) and not any(
            isinstance(inner, ast.Attribute) and inner.attr in TAKEN_OUT for inner in ast.walk(left)
        )

    def _is_in_place(self, node: ast.AST, call: ast.Call, names: set[str]) -> bool:
        """`loss = loss / len(x)`, `loss /= len(x)`: from there on it is a mean."""
        if isinstance(node, ast.AugAssign):
            is_mine = isinstance(node.op, ast.Div) and _holds(node.target, call, names)
            return is_mine and self.counts(node.value, node.target)
        if not isinstance(node, ast.Assign) or not any(_holds(target, call, names) for target in node.targets):
            return False
        return any(self._divides(inner, call, names) for inner in ast.walk(node.value))

    def _handed_on(self, given: ast.Return, call: ast.Call, names: set[str]) -> Iterator[int | None]:
        """Where in what a function gives back a sum stands that is not divided there; None: it is all of it."""
        if given.value is None:
            return
        parts = given.value.elts if isinstance(given.value, ast.Tuple) else [given.value]
        for at, part in enumerate(parts):
            is_whole = isinstance(part, (ast.Name, ast.Call, ast.BinOp)) and _holds(part, call, names)
            if is_whole and not any(self._divides(node, call, names) for node in ast.walk(part)):
                yield at if isinstance(given.value, ast.Tuple) else None


def _names(statement: ast.stmt, position: int | None) -> Iterator[str]:
    """What a statement calls the sum that it is given."""
    for target in getattr(statement, "targets", ()):
        is_one_of = isinstance(target, ast.Tuple) and position is not None and position < len(target.elts)
        given = target.elts[position] if is_one_of else target
        if isinstance(given, ast.Name):
            yield given.id


def _is_trained_whole(node: ast.AST, names: set[str]) -> bool:
    """`loss.backward()`: the sum itself is trained with."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in names
    )


def _holds(node: ast.AST, call: ast.Call, names: set[str]) -> bool:
    return any(n is call or (isinstance(n, ast.Name) and n.id in names) for n in ast.walk(node))
