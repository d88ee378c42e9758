"""What a program goes on summing up itself: objects below the loop that feeds them, and what loops come to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import reads, rounds, walk
from migrate.analysis.units import Class, Function
from migrate.programs.marker import asks_accelerator
from migrate.programs.values.accumulators import statements_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

_DEEPEST = 3  # calls between the method and the sum


def joined_below(facts: Facts, loop: LoopFact, targets: Iterable[str]) -> set[str]:
    """Those of some objects that are joined by a method of theirs before anything else below a loop reads them."""
    return {target for target in targets if _is_joined(facts, loop, target)}


def _is_joined(facts: Facts, loop: LoopFact, target: str) -> bool:
    name = target.partition(".")[0].partition("[")[0]
    for statement in statements_after(facts, loop.node):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            joined = ast.unparse(call.func.value)  # with all that it holds
            if target == joined or target.startswith((f"{joined}.", f"{joined}[")):
                if any(_sums(unit, facts, _DEEPEST) for unit in facts.targets(call)):
                    return True
        if name in reads(statement):
            return False
    return False


def summing(facts: Facts, loop: LoopFact) -> ast.Call | None:
    """A call in a loop that leads to a sum over the processes."""
    calls = (node for node in rounds(loop.node) if isinstance(node, ast.Call))
    return next((call for call in calls if any(_sums(unit, facts, _DEEPEST) for unit in _entered(facts, call))), None)


def _entered(facts: Facts, call: ast.Call) -> Iterator[Function]:
    """The functions of the project that a call enters, a model's forward, too."""
    yield from facts.targets(call)
    for value in facts.values(call.func):
        if value.role is Role.MODEL and isinstance(value.unit, Class):
            yield from (each.unit for each in value.unit.lookup("forward") if isinstance(each.unit, Function))


def _sums(unit: Function, facts: Facts, depth: int) -> bool:
    """Whether a function, or one that it calls, sums something up over the processes."""
    calls = [node for node in walk(unit.node) if isinstance(node, ast.Call)]
    if any(map(_is_sum, calls)):
        return True
    return depth > 0 and any(_sums(target, facts, depth - 1) for call in calls for target in _entered(facts, call))


def _is_sum(call: ast.Call) -> bool:
    return asks_accelerator(call) and isinstance(call.func, ast.Attribute) and call.func.attr == "reduce"
