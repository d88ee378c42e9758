"""The calls by which a program comes to a place in a function, such as its backward.

    def step(model, x, y, optimizer=None):
        loss = criterion(model(x), y)
        if optimizer is not None:
            loss.backward()

`step(model, x, y)` does not come there: it passes no optimizer.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import FUNCTIONS, gives_up, writes
from migrate.analysis.units import Function
from migrate.programs.training.flag_tests import implied, subjects, truth
from migrate.programs.training.phases import Phases
from migrate.programs.values.sources import may_pass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Call, Unit


class Entries:
    """Who comes to a place of a function."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._phases = facts.once(Phases)

    def of(self, node: ast.AST, unit: Function) -> list[tuple[ast.Call, Unit]]:
        """The calls of a function that come to a node; of one that nobody calls, where an optimizer is given it."""
        if unit.calls:
            return self._entering(node, unit)
        return [(use.node, use.unit) for use in self._closures.get(unit, ())]

    def leading(self, uses: Iterable[Use]) -> dict[ast.Call, Unit]:
        """These calls, and the calls that lead there, each with the unit that makes it."""
        found: dict[ast.Call, Unit] = {}
        waiting: list[tuple[ast.Call, Unit]] = [(use.node, use.unit) for use in uses]
        while waiting:
            node, unit = waiting.pop()
            if node not in found:
                found[node] = unit
                waiting += self._entering(node, unit) if isinstance(unit, Function) else []
        return found

    def _entering(self, node: ast.AST, unit: Function) -> list[tuple[ast.Call, Unit]]:
        return [(call.node, call.caller) for call in unit.calls.values() if self._comes(call, unit, node)]

    def _comes(self, call: Call, unit: Function, node: ast.AST) -> bool:
        if call.handed is not None:  # what a library passes of its own is not seen
            return True
        return not any(self._fails(call, unit, test, holds=holds) for test, holds in self._asked(node))

    def _asked(self, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
        """The tests that hold, or fail, wherever a function comes to a node."""
        tree, below = self._facts.tree(node), node
        for above in tree.up(node):
            if isinstance(below, ast.stmt):
                block = tree.block(below)
                for statement in block[: block.index(below)]:
                    if isinstance(statement, ast.If) and not statement.orelse and _leaves(statement.body):
                        yield from implied(statement.test, holds=False)
            if isinstance(above, FUNCTIONS):
                return
            if isinstance(above, (ast.If, ast.IfExp)) and below is not above.test:
                body = above.body if isinstance(above, ast.If) else [above.body]
                yield from implied(above.test, holds=any(below is part for part in body))
            below = above

    def _fails(self, call: Call, unit: Function, test: ast.expr, *, holds: bool) -> bool:
        """Whether a test of a parameter is certainly answered otherwise for what a call passes."""
        asked = list(subjects(test))
        if len(asked) != 1 or not isinstance(subject := asked[0], ast.Name) or self._facts.unit(subject) is not unit:
            return False
        if subject.id not in unit.parameter_names or subject.id in writes(unit.node):
            return False
        given = [self._phases.constants(each) for each in may_pass(call, unit, subject.id)]
        values = [value for each in given for value in each]
        return bool(values) and all(given) and all(truth(test, subject, value) is (not holds) for value in values)

    @cached_property
    def _closures(self) -> dict[Function, list[Use]]:
        """The functions that optimizers are given to step with."""
        found: dict[Function, list[Use]] = {}
        for use in self._facts.method_calls("step"):
            if Role.OPTIMIZER in roles(self._facts.receiver(use.node)):
                for argument in use.node.args[:1]:
                    for value in self._facts.values(argument):
                        if isinstance(value.unit, Function):
                            found.setdefault(value.unit, []).append(use)
        return found


def _leaves(block: list[ast.stmt]) -> bool:
    """Whether a block ends the call of its function."""
    return isinstance(block[-1], ast.Return) or gives_up(block)
