"""What optimizers hold for each group of parameters, and a schedule changes: `param_group["lr"]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    held = next(optimizers_of(facts, target.value), None)
    if held is None:
        return False
    made = origins(facts.values(held), Role.OPTIMIZER)
    return not made or bool(made & {origin for named in program.optimizers for origin in named.origins})


def optimizers_of(facts: Facts, group: ast.expr) -> Iterator[ast.expr]:
    """What holds a group: `optimizer` of `optimizer.param_groups[0]`, and of a name of a loop over these."""
    groups = [group]
    if isinstance(group, ast.Name):
        loops = (loop for loop in facts.tree(group).loops(group) if isinstance(loop, ast.For))
        groups += [
            loop.iter for loop in loops if group.id in {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
        ]
    for inner in (node for each in groups for node in walk(each)):
        if isinstance(inner, ast.Attribute) and inner.attr == "param_groups":
            yield inner.value
