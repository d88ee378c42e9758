"""What holds an object that the home is given and prepares: prepare changes the names of the home, and nothing else.

`fit(net, ...)` prepares its own `net`. An object that was made with the model before, a global name, another attribute
go on with the raw one, and must not be asked for it while the prepared one is trained.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Function, Module
from migrate.programs.outsiders import units_inside
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.naming import Named

_KEPT = (Role.MODEL, Role.LOADER)


def kept_given(facts: Facts, program: Program, units: Collection[Unit]) -> Iterator[Refusal]:
    """The raw object read by code that the home reaches, and loops beside it that train the raw one."""
    if program.home is program.start or program.hands_up:
        return
    inside = units_inside(facts, program)
    for loop in program.training:
        if loop.unit not in inside:
            yield _refusal(loop.node, "this loop trains the model outside of where it is prepared")
            return
    given = [named for named in (*program.models, *program.loaders) if named.is_given]
    for unit in sorted((unit for unit in inside if unit in units), key=_order):
        for node in facts.own(unit):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                mine = origins(facts.values(node), *_KEPT)
                named = next((each for each in given if each.origins & mine), None)
                if named is not None and _is_raw(facts, program, unit, node, named):
                    yield _refusal(node, f"{ast.unparse(node)} is the {named.role.value} as it was before prepare")
                    return


def _order(unit: Unit) -> tuple[str, int]:
    return unit.module.path, unit.node.lineno if isinstance(unit, Function) else 0


def _refusal(node: ast.AST, why: str) -> Refusal:
    return Refusal(node, "MIG104", why, "make the model, the optimizer and the loader in one function and pass them on")


def _is_raw(facts: Facts, program: Program, unit: Unit, node: ast.Name | ast.Attribute, named: Named) -> bool:
    """Whether a node reads the object from where it was before the home prepared it."""
    text = ast.unparse(node)
    if text == named.target and (unit is program.home or "." in text):
        return False
    if isinstance(node, ast.Name):
        above: Unit | None = unit
        while isinstance(above, Function):
            if node.id in above.names or node.id in above.parameter_names:
                return False
            above = above.parent
        return True
    inside = units_inside(facts, program)
    owners = [value for value in facts.values(node.value) if value.role is Role.INSTANCE and value.origin is not None]
    return any(isinstance(made := facts.unit(o.origin), Module) or made not in inside for o in owners if o.origin)
