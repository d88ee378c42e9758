"""Whether code runs once something was trained: in a loop that trains, below one, or called from there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import line_of
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops


def may_follow(facts: Facts, loops: Loops, node: ast.AST, seen: set[Unit] | None = None) -> bool:
    """Whether a node may run after a training, or it is not seen that it does not."""
    unit, seen = facts.unit(node).original, set() if seen is None else seen
    if any(loops.trains(loop) for loop in facts.tree(node).loops(node)):
        return True
    line = line_of(node)
    if any(isinstance(n, ast.Call) and n.lineno < line and loops.trains(n) for n in facts.own(unit)):
        return True
    if not isinstance(unit, Function) or unit in seen:
        return False
    seen.add(unit)
    calls = facts.callers(unit)
    return not calls or any(call.handed is not None or may_follow(facts, loops, call.node, seen) for call in calls)
