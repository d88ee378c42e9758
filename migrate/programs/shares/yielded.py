"""What a generator that trains gives to who goes through it: `for x, y in loader: ...  yield loss.item()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import rounds
from migrate.analysis.units import Function
from migrate.programs.shares.own_places import holds_own_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


def yielded(facts: Facts, loop: LoopFact) -> Iterator[ast.expr]:
    """What a training loop yields, to code that asks for it, of a process's own batches."""
    if isinstance(loop.unit, Function) and facts.callers(loop.unit):
        for node in rounds(loop.node):
            if isinstance(node, ast.Yield) and node.value is not None and facts.unit(node) is loop.unit:
                if holds_own_parts(facts, loop, node.value):
                    yield node.value
