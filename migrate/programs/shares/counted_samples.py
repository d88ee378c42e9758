"""Tests in a training loop that go by how many samples there were: a process counts its own.

    if batch_idx * len(x) > limit: break                seen += len(x)
                                                        if seen >= limit: break

Each of N processes comes to the limit when all of them have seen N times as many.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER
from migrate.analysis.syntax import argument_at, rounds, walk
from migrate.programs.training.phases import evaluating
from migrate.programs.values.batch_size import counts_rows
from migrate.programs.values.kept import is_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops

_TESTS = (ast.If, ast.While, ast.IfExp)


def goes_by_samples(facts: Facts, loops: Loops, loop: LoopFact) -> Iterator[ast.expr]:
    """Such tests, in a loop and in the functions that train for it."""
    units = (unit.node for unit in loops.updates.functions(loop.node) if loops.trains(unit.node))
    whole = evaluating(facts, loop)  # there each process sees all batches
    for root in dict.fromkeys((loop.node, *units)):
        nodes = [node for node in rounds(root) if node not in whole]
        grown = {
            ast.unparse(node.target)
            for node in nodes
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _is_size(facts, loop, node.value)
        }
        for test in (node.test for node in nodes if isinstance(node, _TESTS)):
            compared = (each for each in walk(test) if isinstance(each, ast.Compare))
            if any(_counts(facts, loop, side, grown) for each in compared for side in (each.left, *each.comparators)):
                yield test


def _counts(facts: Facts, loop: LoopFact, node: ast.expr, grown: set[str]) -> bool:
    """Whether a number is how many samples there were: `seen`, `(i + 1) * len(x)`, and parts of it."""
    if is_place(node):
        return ast.unparse(node) in grown
    if not isinstance(node, ast.BinOp):
        return False
    sides = (node.left, node.right)
    if isinstance(node.op, ast.Mult):
        sizes = [side for side in sides if _is_size(facts, loop, side)]
        return len(sizes) == 1 and not any(isinstance(side, ast.Constant) for side in sides)
    return any(_counts(facts, loop, side, grown) for side in sides)


def _is_size(facts: Facts, loop: LoopFact, node: ast.expr) -> bool:
    """`len(x)` of a batch, or what the loader was told to put into one: `args.batch_size`."""
    if counts_rows(facts, node):
        return any(_is_of(facts, loop, inner) for inner in walk(node) if isinstance(inner, ast.expr))
    sizes = (argument_at(made, 1, "batch_size") for made in loop.loaders if isinstance(made, ast.Call))
    return is_place(node) and ast.unparse(node) in {ast.unparse(size) for size in sizes if size is not None}


def _is_of(facts: Facts, loop: LoopFact, node: ast.expr) -> bool:
    return any(value.role in FROM_LOADER and value.origin in loop.loaders for value in facts.values(node))
