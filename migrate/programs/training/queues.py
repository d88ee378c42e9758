"""Queues of what earlier batches left, with which a loss compares: `queue = torch.cat((queue, keys))[len(keys):]`.

Each process fills its own with its share of the batches. A tensor that only collects, of predictions, is none of them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, origins
from migrate.analysis.syntax import walk
from migrate.programs.training.loss_parts import LossParts
from migrate.programs.training.sample_rows import JOINING
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


def queues(facts: Facts, loop: LoopFact, models: Collection[ast.AST]) -> Iterator[ast.Assign]:
    """The statements of a training loop that put a part of the batch into a queue that the loss is computed from."""
    filled = [each for each in walk(loop.node) if isinstance(each, ast.Assign) and _is_filled(facts, loop, each)]
    filled = [each for each in filled if not _begins_anew(facts, loop, each)]
    read = {ast.unparse(part) for part in LossParts(facts, loop, models).each()} if filled else set()
    yield from (statement for statement in filled if ast.unparse(statement.targets[0]) in read)


def _is_filled(facts: Facts, loop: LoopFact, statement: ast.Assign) -> bool:
    place = ast.unparse(statement.targets[0])
    for call in (node for node in walk(statement.value) if isinstance(node, ast.Call)):
        given = call.args[0] if call.args and called_by_name(facts, call) & JOINING else None
        parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
        others = [part for part in parts if ast.unparse(part) != place]
        if len(others) < len(parts) and any(
            origins(facts.values(each), *FROM_LOADER) & loop.loaders for each in others
        ):
            return True
    return False


def _begins_anew(facts: Facts, loop: LoopFact, filling: ast.Assign) -> bool:
    """Whether each step begins with an empty one, with zeros or with a part of its own batch, which it then fills."""
    place = ast.unparse(filling.targets[0])
    if place in map(ast.unparse, walk(loop.node.target) if isinstance(loop.node, ast.For) else ()):
        return True
    return any(
        _is_of_step(facts, loop, value)
        for above in _above(facts, loop, filling)
        for target, value in _bound(above)
        if ast.unparse(target) == place
    )


def _above(facts: Facts, loop: LoopFact, statement: ast.stmt) -> Iterator[ast.Assign]:
    """The assignments that each step has come through when it comes to a statement."""
    tree = facts.tree(statement)
    for held in (statement, *tree.up(statement)):
        if held is loop.node:
            return
        if isinstance(held, ast.stmt):
            block = tree.block(held)
            yield from (each for each in block[: block.index(held)] if isinstance(each, ast.Assign))


def _bound(statement: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each place that an assignment sets, with what it is given: `a, b = x, y` gives two."""
    for target in statement.targets:
        match target, statement.value:
            case ast.Tuple(names), ast.Tuple(values) if len(names) == len(values):
                yield from zip(names, values, strict=True)
            case ast.Tuple(names), value:
                yield from ((name, value) for name in names)
            case _:
                yield target, statement.value


def _is_of_step(facts: Facts, loop: LoopFact, value: ast.expr) -> bool:
    """`[]`, `torch.zeros(8, 2)`, `torch.zeros_like(y)`: nothing that an earlier step has left."""
    if isinstance(value, (ast.Constant, ast.List)):
        return True
    inside = set(walk(value))
    made = facts.values(value)
    return bool(made) and all(
        (each.role in FROM_LOADER and each.origin in loop.loaders) or each.origin in inside for each in made
    )
