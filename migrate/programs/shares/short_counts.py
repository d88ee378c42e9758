"""Numbers that are divided after a training loop by the number of its last batch, one less than there were.

`print(train_loss / batch_idx)`: one process has B batches and divides by B - 1, each of N has B / N and divides by one
less than that, so what it prints is another number, though the sum above it is joined.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import DEFINITIONS, reads, walk, writes
from migrate.programs.values.accumulators import statements_after
from migrate.programs.values.divided import numbers_of_batches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


def short_counts(facts: Facts, loop: LoopFact, names: Collection[str]) -> Iterator[ast.BinOp]:
    """Where a loop's numbers, under these names, are divided below it by the number of its last batch as it is."""
    if not _counts_from_zero(facts, loop.node):
        return
    counters = numbers_of_batches(facts, loop)
    for statement in statements_after(facts, loop.node):
        for node in walk(statement) if not isinstance(statement, DEFINITIONS) else ():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Name):
                if node.right.id in counters and not reads(node.left).isdisjoint(names):
                    yield node
        counters -= writes(statement)


def _counts_from_zero(facts: Facts, loop: ast.AST) -> bool:
    """`for i, batch in enumerate(loader):`, in which the last number is one less than how many there were."""
    calls = [node for node in walk(getattr(loop, "iter", loop)) if isinstance(node, ast.Call)]
    counting = [call for call in calls if "builtins.enumerate" in facts.called(call)]
    return bool(counting) and all(len(call.args) == 1 and not call.keywords for call in counting)
