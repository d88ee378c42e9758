"""Training inside of an expression, `losses = [step(x, y) for x, y in loader]`: no loop that can be shared out.

So it is in `map(step, loader)`, which is gone through somewhere.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import COMPREHENSIONS, walk
from migrate.analysis.units import entered

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops


def trained_in(facts: Facts, loops: Loops, loop: LoopFact) -> ast.expr | None:
    """The expression in a training loop, or in what it calls, that goes through a loader and trains on its batches."""
    inside = [loop.node, *(unit.node for unit in loops.updates.functions(loop.node))]
    nodes = (node for root in inside for node in walk(root).of(ast.expr))
    return next((node for node in nodes if _trains(facts, loops, node)), None)


def _trains(facts: Facts, loops: Loops, node: ast.expr) -> bool:
    if isinstance(node, COMPREHENSIONS):
        return loops.trains(node) and any(facts.loaders(facts.values(each.iter)) for each in node.generators)
    if not isinstance(node, ast.Call) or "builtins.map" not in facts.called(node) or not node.args:
        return False
    steps = entered(facts.values(node.args[0]))
    return any(loops.trains(unit.node) for unit in steps) and any(
        facts.loaders(facts.values(each)) for each in node.args[1:]
    )
