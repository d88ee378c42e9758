"""Numbers that run on from step to step, and that these show while the loop runs.

    smooth = 0.9 * smooth + 0.1 * loss.item()
    sums["loss"] += loss.item() * len(x)
    if step % 100 == 0:
        print(step, smooth, sums["loss"])

Each process shows what it has of the data.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import ROWS, roles
from migrate.analysis.syntax import reads, rounds, walk, writes
from migrate.programs.training.phases import evaluating
from migrate.programs.values.accumulators import holds_own
from migrate.programs.values.kept import is_place, root_of
from migrate.programs.values.lists import is_asked_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


def running(facts: Facts, loop: LoopFact) -> Iterator[str]:
    """Such names and places, as they are written."""
    whole = evaluating(facts, loop)  # there each process sees all batches
    grown: dict[str, list[ast.stmt]] = {}
    for node in rounds(loop.node):
        if isinstance(node, (ast.Assign, ast.AugAssign)) and node not in whole and holds_own(facts, loop, node.value):
            for place in _grown(node):
                grown.setdefault(place, []).append(node)
    for place, growing in grown.items():
        if not _is_made_by_step(loop, place, growing[0]) and _is_shown(facts, loop, place):
            yield place


def _grown(statement: ast.stmt) -> set[str]:
    """What a statement makes of what it was before."""
    if isinstance(statement, ast.AugAssign):
        return {ast.unparse(statement.target)} if is_place(statement.target) else set()
    if not isinstance(statement, ast.Assign):
        return set()
    read = {ast.unparse(node) for node in walk(statement.value) if isinstance(node, ast.expr) and is_place(node)}
    return read & {ast.unparse(target) for target in statement.targets if is_place(target)}


def _is_made_by_step(loop: LoopFact, place: str, growing: ast.stmt) -> bool:
    """Whether each step makes it anew before it grows: `loss = criterion(out, y)`, then `loss += penalty`."""
    root = root_of(place)
    if isinstance(loop.node, (ast.For, ast.AsyncFor)) and root in writes(loop.node.target):
        return True
    made = (each for each in _straight(loop.node.body) if each.lineno < growing.lineno and root in writes(each))
    return any(isinstance(each, ast.Assign) and root not in reads(each.value) for each in made)


def _straight(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block that each round comes to."""
    for statement in block:
        yield statement
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _straight(statement.body)


def _is_shown(facts: Facts, loop: LoopFact, place: str) -> bool:
    tree = facts.tree(loop.node)
    read = (node for node in rounds(loop.node) if isinstance(node, ast.expr) and is_place(node))
    asked = [node for node in read if ast.unparse(node) == place and place not in _grown(tree.statement(node))]
    if any(roles(facts.values(node)) & ROWS for node in asked):
        return False  # a state that the model carries on
    return any(is_asked_for(tree.parents, node) for node in asked)
