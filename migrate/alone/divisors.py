"""What a sum over the processes is divided by, once it is no sum over them any more.

`rt /= world_size` goes with `dist.all_reduce(rt)`. If it is not seen whether `n` of `rt /= n` is the number of
processes, neither way is safe.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.scales import Scales
    from migrate.alone.world import World

_DIVISIONS = (ast.Div, ast.FloorDiv)
_DEEPEST = 4


def unknown_divisors(world: World, scales: Scales) -> Iterator[Refusal]:
    """The divisions by what may be the number of processes."""
    for module in world.modules:
        for node in world.facts.tree(module.tree).nodes:
            if (found := _division(node)) is None or id(node) in world.dead or world.is_left(node):
                continue
            divided, divisor = found
            if not scales.is_reduced(divided, depth=0) or world.is_size(divisor) or scales.is_reduced(divisor):
                continue
            if _may_be_size(world, scales, divisor, _DEEPEST):
                text = ast.unparse(divisor)
                why = (
                    f"what all processes have summed up is divided by {text}: whether that is their number is not seen"
                )
                yield Refusal(node, "MIG113", why, f"write torch.distributed.get_world_size() instead of {text}")


def _division(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.AugAssign) and isinstance(node.op, _DIVISIONS):
        return node.target, node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, _DIVISIONS):
        return node.left, node.right
    return None


def _may_be_size(world: World, scales: Scales, node: ast.expr, depth: int) -> bool:
    """Whether a number may be that of the processes: some way to it says so, or a way to it is not seen."""
    if world.is_size(node):
        return True
    if not isinstance(node, (ast.Name, ast.Attribute)) or depth == 0:
        return False  # it is computed
    if world.sources.option(node) is not None:
        return not scales.is_shared(ast.unparse(node))
    given = world.sources.given(node)
    unit = world.facts.unit(node)
    is_parameter = isinstance(unit, Function) and isinstance(node, ast.Name) and node.id in unit.parameter_names
    if not given.expressions or (is_parameter and not given.complete):
        return True
    return any(_may_be_size(world, scales, each, depth - 1) for each in given.expressions)
