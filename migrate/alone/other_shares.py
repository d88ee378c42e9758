"""Sizes of batches that several processes divide by a number that is not seen to be theirs.

    if args.distributed:
        batch_size //= gpus

The branch goes away, and prepare would not divide in its place.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.numbers import undivided
from migrate.alone.ways import gone
from migrate.analysis.syntax import walk
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.alone.world import World

_PARTS = (ast.Div, ast.FloorDiv)


def other_shares(world: World, batch_sizes: Collection[ast.expr]) -> Iterator[Refusal]:
    """What divides the size of a batch so, in branches that go away."""
    why = "the size of a batch is divided in a branch that goes away, and not seen by the number of processes"
    for module in world.modules:
        for node in world.facts.tree(module.tree).nodes:
            if id(node) not in world.dead and isinstance(node, (ast.If, ast.IfExp)):
                for lost in _gone(world, node):
                    if _is_divided(world, batch_sizes, lost):
                        yield Refusal(lost, "MIG113", why, "divide it by torch.distributed.get_world_size()")


def _gone(world: World, branch: ast.If | ast.IfExp) -> Iterator[ast.AST]:
    if isinstance(branch, ast.If):
        inside = (inner for statement in gone(world, branch) for inner in walk(statement))
        yield from (inner for inner in inside if isinstance(inner, ast.stmt))
    elif (truth := world.truth(branch.test)) is not None:
        yield branch.orelse if truth else branch.body


def _is_divided(world: World, batch_sizes: Collection[ast.expr], node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign) and isinstance(node.op, _PARTS):
        names = {ast.unparse(n) for n in batch_sizes if isinstance(n, (ast.Name, ast.Attribute))}
        return ast.unparse(node.target) in names and not world.is_size(node.value)
    value = node.value if isinstance(node, ast.Assign) else node
    if not isinstance(value, ast.expr) or value not in batch_sizes:
        return False
    inner = value.args[0] if isinstance(value, ast.Call) and value.args else value
    return isinstance(inner, ast.BinOp) and isinstance(inner.op, _PARTS) and undivided(world, value) is None
