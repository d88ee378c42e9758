"""Optimizers whose states are shared out over the processes: on one process they are the optimizer inside.

    ZeroRedundancyOptimizer(params, optimizer_class=AdamW, lr=lr)   ->   AdamW(params, lr=lr)
    OSS(params, optim=AdamW, lr=lr)                                 ->   AdamW(params, lr=lr)

Each process steps on all parameters then, with the same result; `consolidate_state_dict` has nothing to bring together.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import keyword_of

if TYPE_CHECKING:
    from migrate.alone.pen import Pen
    from migrate.alone.world import World

#: Those that do so, and the keyword of the class that they step with.
_SHARDING = {
    "torch.distributed.optim.ZeroRedundancyOptimizer": "optimizer_class",
    "torch.distributed.optim.zero_redundancy_optimizer.ZeroRedundancyOptimizer": "optimizer_class",
    "fairscale.optim.OSS": "optim",
    "fairscale.optim.oss.OSS": "optim",
}
#: What they are told beside the arguments of that class.
_OWN = frozenset(
    """process_group parameters_as_bucket_view overlap_with_ddp group broadcast_buffer_size force_broadcast_object
    broadcast_fp16""".split()
)
_CONSOLIDATE = "consolidate_state_dict"


def is_sharded(world: World, call: ast.Call) -> bool:
    """Whether a call makes such an optimizer, of a class that is named."""
    return _inside(world, call) is not None


def rewrite(world: World, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
    """Make the optimizer inside."""
    if not isinstance(node, ast.Call) or (inside := _inside(world, node)) is None:
        return None
    pen.rewrite(node.func, ast.unparse(inside.value))
    gone = [inside, *(keyword for keyword in node.keywords if keyword.arg in _OWN)]
    for keyword in gone:
        pen.remove_argument(node, keyword)
    return [*node.args, *(keyword for keyword in node.keywords if keyword not in gone)]


def is_idle(world: World, statement: ast.stmt) -> bool:
    """`optimizer.consolidate_state_dict(to=0)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_asked = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == _CONSOLIDATE
    return is_asked and any(is_sharded(world, use.node) for use in world.facts.calls)


def _inside(world: World, call: ast.Call) -> ast.keyword | None:
    names = world.facts.called(call) & _SHARDING.keys()
    if not names or any(keyword.arg is None for keyword in call.keywords):
        return None
    keyword = keyword_of(call, _SHARDING[min(names)])
    return keyword if keyword is not None and isinstance(keyword.value, (ast.Name, ast.Attribute)) else None
