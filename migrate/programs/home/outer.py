"""The code around a home: what makes everything in one function, and goes on with what that gives, in another.

`model = fit()` and `torch.save(model.state_dict(), path)` in main(), with the model prepared in fit(): main() has to do
with the accelerator, too, and what it prints comes from every process. Then the accelerator is made there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Function
from migrate.programs.values.outputs import Outputs

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.home.homes import Wanted

_DEEPEST = 6  # calls between where the program begins and its home
_OBJECTS = (Role.MODEL, Role.OPTIMIZER, Role.LOADER)


def widened(facts: Facts, start: Unit, entry: ast.AST | None, wanted: Wanted) -> tuple[Unit, ast.AST | None]:
    """The start in the outermost caller that writes, or uses what is prepared, with its call; else as it is."""
    mine = wanted.models | wanted.optimizers | wanted.loaders
    found, unit = (start, entry), start
    for _ in range(_DEEPEST):
        callers = facts.callers(unit) if isinstance(unit, Function) else []
        above = {id(call.caller): call.caller for call in callers}
        if len(above) != 1 or not _can_be_handed(facts, unit):
            break
        call = min((call.node for call in callers), key=lambda node: node.lineno)
        (unit,) = above.values()
        if not facts.is_editable(unit) or (isinstance(unit, Function) and unit.owner is not None):
            break
        if _writes(facts, unit) or _uses(facts, unit, mine):
            found = (unit, call)
    return found


def _can_be_handed(facts: Facts, unit: Unit) -> bool:
    return isinstance(unit, Function) and unit.name != "__init__" and facts.signatures.of(unit).can_change


def _writes(facts: Facts, unit: Unit) -> bool:
    outputs = facts.once(Outputs)
    return any(
        output.PRINT in facts.called(node) or outputs.writes(node) or outputs.log_file(node) is not None
        for node in facts.own(unit)
        if isinstance(node, ast.Call)
    )


def _uses(facts: Facts, unit: Unit, mine: set[ast.AST]) -> bool:
    return any(
        isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and bool((origins(facts.values(node), *_OBJECTS) | _inside(facts, node)) & mine)
        for node in facts.own(unit)
    )


def _inside(facts: Facts, node: ast.expr) -> set[ast.AST]:
    values = facts.values(node)
    return {origin for role in _OBJECTS for origin in facts.inside(values, role)}
