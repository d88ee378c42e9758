"""What makes something else of one row than of several: `x.squeeze()` takes the dimension of the rows away, too.

The last batch of an evaluation may have one row for each process, where one process has several. What a model is given,
and what is gathered, must have the same dimensions for both.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import argument_at, arguments, root_name
from migrate.analysis.units import Function
from migrate.programs.reach.callees import reached
from migrate.programs.reach.forwards import forwards_inside
from migrate.programs.values.place import number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_ELSE = "takes the dimension of the rows away where there is one row; with another one, squeeze(1), it does not"


def drops_rows(facts: Facts, before: Iterable[ast.stmt], forward: ast.stmt) -> str | None:
    """Why a process's one row may have no dimension of its own; None if it has one."""
    before = list(before)
    calls = [node for part in (*before, forward) for node in ast.walk(part) if isinstance(node, ast.Call)]
    running = [call for call in calls if Role.MODEL in roles(facts.values(call.func))]
    given = [each for call in running for each in arguments(call)]
    for call in (node for part in (*before, *given) for node in ast.walk(part) if squeezes(node)):
        if roles(facts.values(_squeezed(call))) & FROM_LOADER:
            return f"`{ast.unparse(call)}` (line {call.lineno}) {_ELSE}"
    for unit in reached(facts, {unit for call in running for unit in forwards_inside(facts, call)}):
        for call in (node for node in facts.own(unit) if squeezes(node)):
            if not _is_own(unit, call):
                return f"`{ast.unparse(call)}` in the model (line {call.lineno}) {_ELSE}"
    return None


def squeezes(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a call takes the first dimension away if its size is 1: `x.squeeze()`, `torch.squeeze(x, 0)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "squeeze":
        return False
    dim = argument_at(node, int(_is_function(node)), "dim")
    return dim is None or number(dim) == 0


def _is_function(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "torch"


def _squeezed(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.args[0] if _is_function(call) and call.args else call.func.value


def _is_own(unit: Unit, call: ast.Call) -> bool:
    """Whether something that the model holds is squeezed, `self.scale.squeeze()`: it has no rows."""
    itself = unit.itself.arg if isinstance(unit, Function) and unit.itself is not None else None
    return itself is not None and root_name(_squeezed(call)) == itself
