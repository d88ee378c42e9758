"""Whether something is None on all processes or on none of them, whatever it is: `if optimizer is not None:`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import is_none

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.processes.sameness import Sameness

#: What is made, and so is there.
_MADE = frozenset({Role.MODEL, Role.CRITERION, Role.OPTIMIZER, Role.SCHEDULER, Role.LOADER, Role.INSTANCE, Role.SCALER})


@dataclass(frozen=True, slots=True)
class Presence:
    """What is asked for of a name: only whether there is something."""


PRESENCE = Presence()


def asked_for(node: ast.AST) -> ast.expr | None:
    """What a comparison asks to be there: `x` of `x is None` and of `x is not None`."""
    match node:
        case ast.Compare(left=asked, ops=[ast.Is() | ast.IsNot()], comparators=[other]) if is_none(other):
            return asked
    return None


def is_there_alike(facts: Facts, sameness: Sameness, node: ast.expr) -> bool:
    """Whether an expression is None on all processes or on none of them."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return sameness.answers.to((node, "presence"), lambda: sameness.named(node, value=PRESENCE))
    made = roles(facts.values(node))
    return (bool(made) and made <= _MADE) or sameness.same(node)
