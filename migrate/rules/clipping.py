"""gradient-clipping: gradients are clipped through the accelerator.

    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)   ->   accelerator.clip_grad_norm_(model.parameters(), 1.0)

The accelerator unscales fp16 gradients first, and clips sharded ones as a whole. In an optimizer of the project, in
whose step() gradients are what they should be, the call stays; with Accelerate, also where the program unscales by a
call of its own, as it may not do so twice.
Safe: on one process in full precision it is the same call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis.known.training import CLIPPING
from migrate.analysis.roles import Role
from migrate.analysis.units import Function
from migrate.rules.imports import drop_unused
from migrate.rules.rule import rule

if TYPE_CHECKING:
    import ast

    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG109", optional=True)
def gradient_clipping(conversion: Conversion, draft: Draft) -> None:
    """Rewrite clip_grad_norm_ and clip_grad_value_ in the program's functions."""
    if conversion.unscales_apart:
        return
    rewritten: list[ast.expr] = []
    for use in conversion.uses:
        methods = {CLIPPING[name] for name in conversion.facts.called(use.node) if name in CLIPPING}
        if len(methods) == 1 and not _is_of_optimizer(conversion, use.unit):
            draft.rewrite(use.node.func, f"{conversion.access.name(use.node)}.{methods.pop()}")
            rewritten.append(use.node.func)
    drop_unused(conversion, draft, rewritten)


def _is_of_optimizer(conversion: Conversion, unit: Unit) -> bool:
    owner = unit.owner if isinstance(unit, Function) else None
    return owner is not None and Role.OPTIMIZER in conversion.facts.roles_of_bases(owner)
