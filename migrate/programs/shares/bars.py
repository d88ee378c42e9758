"""Bars that a training loop moves on by the samples of its batch: `tqdm(total=len(data))`, `bar.update(len(x))`.

Each process sees its share of the samples, so the bar of N processes ends at an Nth of the total.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.progress import BARS
from migrate.analysis.syntax import rounds, walk
from migrate.programs.values.batch_size import is_size
from migrate.programs.values.lengths import measured
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


def bars_of_samples(facts: Facts, loop: LoopFact) -> Iterator[str]:
    """The bars that one loop moves on so, as they are written."""
    for call in (node for node in rounds(loop.node) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "update" and len(call.args) == 1:
            of_data = any(_is_of_data(facts, value.origin) for value in facts.values(call.func.value))
            if of_data and is_size(facts, call.args[0]):
                yield ast.unparse(call.func.value)


def _is_of_data(facts: Facts, made: ast.AST | None) -> bool:
    """Whether a bar is made with a total that is not the length of a loader, which is that of a process."""
    if not isinstance(made, ast.Call) or facts.called(made).isdisjoint(BARS):
        return False
    total = next((keyword.value for keyword in made.keywords if keyword.arg == "total"), None)
    behind = facts.once(Sources).behind([total]) if total is not None else ()
    calls = [node for part in behind for node in walk(part) if isinstance(node, ast.Call)]
    return total is not None and not any(measured(facts, call) for call in calls)
