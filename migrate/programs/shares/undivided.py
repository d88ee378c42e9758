"""Numbers joined by their mean, as a process's own batches divide them, that are also read where these do not.

    print(f"{correct}/{len(data)} ({correct / (steps * batch_size):.2f})")

The second is right by the mean of the processes' shares; the first would be by their sum, and is N times too small.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import DEFINITIONS, walk, writes
from migrate.programs.values.accumulators import divided_already, statements_after
from migrate.programs.values.additions import counted, grown
from migrate.programs.values.divided import counts_batches, lengths_of
from migrate.programs.values.rounds import are_alike
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.values.accumulators import Accumulator


def undivided(facts: Facts, loop: LoopFact, accumulator: Accumulator) -> Iterator[ast.expr]:
    """Where a name that is joined by its mean is divided by something else below the loop, or shown as it is."""
    if are_alike(facts, loop.node, accumulator.after):
        return
    counters = set(counted(facts, loop.node))
    for statement in statements_after(facts, accumulator.after):
        if isinstance(statement, DEFINITIONS):
            continue
        for node in walk(statement):
            if _reads(node, accumulator.name) and isinstance(node, ast.expr):
                if _is_whole(facts, loop, node, counters):
                    yield node
        if accumulator.name in writes(statement):
            return


def is_mean_already(facts: Facts, loop: LoopFact, name: str) -> bool:
    """Whether all that is added is a part of a mean: `total += loss.item() / len(loader)`."""
    counters = set(counted(facts, loop.node))
    added = grown(facts, loop).get(name, [])
    divisors = [list(divided_already([each])) for each in added]
    return bool(added) and all(any(_counts_own(facts, loop, each, counters) for each in found) for found in divisors)


def _counts_own(facts: Facts, loop: LoopFact, divisor: ast.expr, counters: Collection[str]) -> bool:
    return counts_batches(facts, loop, divisor, counters) or any(lengths_of(facts, divisor))


def _reads(node: ast.AST, name: str) -> bool:
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
        return False
    return ast.unparse(node) == name


def _is_whole(facts: Facts, loop: LoopFact, read: ast.expr, counters: Collection[str]) -> bool:
    """Whether no count of a process's own batches divides what is read, and something else does, or it is shown."""
    is_divided = False
    below: ast.AST = read
    for above in facts.tree(read).up(read):
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div) and above.left is below:
            if _counts_own(facts, loop, above.right, counters):
                return False
            is_divided = is_divided or not isinstance(above.right, ast.Constant)
        elif isinstance(above, ast.Call) and facts.targets(above):
            return False  # what a function of the project makes of it
        elif isinstance(above, ast.stmt):
            return is_divided or (isinstance(above, ast.Expr) and _is_text(facts, below))
        below = above
    return False


def _is_text(facts: Facts, node: ast.AST) -> bool:
    """Whether a statement that is a call writes text: `print(correct)`, `log.info(f"{correct}")`."""
    is_print = isinstance(node, ast.Call) and "builtins.print" in called_by_name(facts, node)
    return is_print or any(_formats(inner) for inner in walk(node))


def _formats(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format")):
            return True
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str())):
            return True
    return False
