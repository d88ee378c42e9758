"""What optimizers hold for each group of parameters, and a schedule changes: `param_group["lr"]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import walk

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.program import Program

#: What a schedule sets in a group of parameters.
_SCHEDULED = frozenset({"lr", "weight_decay", "momentum", "betas"})


def is_scheduled(facts: Facts, program: Program, target: ast.expr) -> bool:
    """Whether an expression is the rate, or something else that is scheduled, of a group of parameters."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant):
        return False
    if target.slice.value not in _SCHEDULED:
        return False
    groups = [target.value]
    if isinstance(target.value, ast.Name):
        loops = (loop for loop in facts.tree(target).loops(target) if isinstance(loop, ast.For))
        groups += [
            loop.iter
            for loop in loops
            if target.value.id in {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
        ]
    for inner in (node for group in groups for node in walk(group)):
        if isinstance(inner, ast.Attribute) and inner.attr == "param_groups":
            made = origins(facts.values(inner.value), Role.OPTIMIZER)
            mine = {origin for named in program.optimizers for origin in named.origins}
            return not made or bool(made & mine)
    return False
