"""Models that are moved where an object is made that places them: `model.to(device)` above `Trainer(model)`.

The accelerator is made in the object's `__init__`, and so the process has no GPU of its own before: moved above, the
models of all processes of a machine would meet on its first one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DATA_PARALLEL
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import line_of
from migrate.analysis.units import Function
from migrate.programs.device.early import is_needed_between
from migrate.programs.home.around import making

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts, Use
    from migrate.programs.prepare.placement import Placement
    from migrate.programs.program import Program


def is_placed_by_object(facts: Facts, program: Program, placement: Placement, use: Use) -> bool:
    """Whether a move is of a model that an object made below prepares, and that nothing runs or copies before."""
    mine, start = origins(facts.receiver(use.node), Role.MODEL), program.start
    if roles(facts.receiver(use.node)) != {Role.MODEL} or not mine <= program.model_origins:
        return False
    made = _made_below(facts, start, use) if isinstance(start, Function) else None
    if made is None or start is not program.home or not facts.is_editable(use.unit):
        return False
    prepare = placement.stages.of(mine).spot.statement
    return facts.unit(prepare) is start and not is_needed_between(facts, use.node, mine, made, prepare)


def _made_below(facts: Facts, start: Function, use: Use) -> ast.Call | None:
    """The one call that makes the object, where it stands below a move, in its block or deeper."""
    if not start.sets_up or start.owner is None:
        return None
    calls = list(making(facts, start))
    if len(calls) != 1 or calls[0].caller is not use.unit:
        return None
    tree, made = facts.tree(use.node), calls[0].node
    is_below = line_of(use.node) < line_of(made)
    statement = tree.statement(use.node)
    while tree.in_block(made, tree.block(statement)) is None and isinstance(above := tree.parents[statement], ast.If):
        statement = above  # `if torch.cuda.is_available(): model.cuda()`
    in_block = tree.in_block(made, tree.block(statement)) is not None
    wraps = any(facts.called(node) & DATA_PARALLEL for node in facts.own(use.unit) if isinstance(node, ast.Call))
    return made if is_below and in_block and not wraps and next(tree.loops(use.node), None) is None else None
