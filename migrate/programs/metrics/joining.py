"""Objects that a program joins itself over the processes, below the loop that feeds them: `meters.synchronize()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import reads, walk
from migrate.programs.marker import asks_accelerator
from migrate.programs.values.accumulators import statements_after

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
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


def _sums(unit: Function, facts: Facts, depth: int) -> bool:
    """Whether a function, or one that it calls, sums something up over the processes."""
    calls = [node for node in walk(unit.node) if isinstance(node, ast.Call)]
    if any(
        asks_accelerator(call) and isinstance(call.func, ast.Attribute) and call.func.attr == "reduce" for call in calls
    ):
        return True
    return depth > 0 and any(_sums(target, facts, depth - 1) for call in calls for target in facts.targets(call))
