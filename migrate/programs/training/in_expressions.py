"""Training inside of an expression, `losses = [step(x, y) for x, y in loader]`: no loop that can be shared out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import COMPREHENSIONS, walk

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops


def trained_in(facts: Facts, loops: Loops, loop: LoopFact) -> ast.expr | None:
    """The expression in a training loop, or in what it calls, that goes through a loader and trains on its batches."""
    inside = [loop.node, *(unit.node for unit in loops.updates.functions(loop.node))]
    return next(
        (
            node
            for root in inside
            for node in walk(root)
            if isinstance(node, COMPREHENSIONS)
            and loops.trains(node)
            and any(facts.loaders(facts.values(each.iter)) for each in node.generators)
        ),
        None,
    )
