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
    """Whether each step begins with an empty one, or with zeros, which the parts of its own batch alone then fill."""
    place = ast.unparse(filling.targets[0])
    above = [s for s in loop.node.body if isinstance(s, ast.Assign) and s.lineno < filling.lineno]
    return any(place in map(ast.unparse, s.targets) and _is_of_step(facts, loop, s.value) for s in above)


def _is_of_step(facts: Facts, loop: LoopFact, value: ast.expr) -> bool:
    """`[]`, `torch.zeros(8, 2)`, `torch.zeros_like(y)`: nothing that an earlier step has left."""
    if isinstance(value, (ast.Constant, ast.List)):
        return True
    inside = set(walk(value))
    made = facts.values(value)
    return bool(made) and all(
        (each.role in FROM_LOADER and each.origin in loop.loaders) or each.origin in inside for each in made
    )
