"""Mixed precision that was apex's: what its settings ask of the accelerator's constructor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.texts import text_of
from migrate.programs.argument import Argument
from migrate.programs.marker import PRECISION
from migrate.programs.program import Refusal
from migrate.programs.stages import NoPlace
from migrate.programs.values.conditions import needs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program


def started(facts: Facts, units: Iterable[Unit]) -> list[ast.Assign]:
    """The assignments that stand where mixed precision was turned on."""
    found = (node for unit in units for node in facts.own(unit).of(ast.Assign))
    return sorted({node for node in found if text_of(node.targets[0]) == PRECISION}, key=lambda n: n.lineno)


def argument(facts: Facts, program: Program, starts: list[ast.Assign]) -> Argument:
    """What the accelerator is given.

    Raises:
        NoPlace: that has no name where the accelerator is made.
    """
    value = starts[0].value
    if any(ast.dump(start.value) != ast.dump(value) for start in starts):
        raise _refused(starts[1], "apex is given different settings at several places")
    unit = facts.unit(starts[0])
    if unit is not program.home:
        for name in (n for n in ast.walk(value) if isinstance(n, ast.Name)):
            if not _is_same(facts, name, unit, program.home):
                raise _refused(starts[0], f"{name.id}, which decides about it, is not at hand where prepare is called")
    return Argument("mixed_precision", ast.unparse(value), frozenset(needs(value)))


def _is_same(facts: Facts, name: ast.Name, unit: Unit, home: Unit | None) -> bool:
    """Whether a name of one function is that object in another one, too."""
    if home is None:
        return False
    here = {value.origin for value in facts.values(name)}
    bound = [v for b in facts.bindings_in(home) if b.target == name.id for v in b.values]
    there = {v.origin for v in (*bound, *getattr(home, "parameters", {}).get(name.id, ()))}
    is_global = not there and not any(b.target == name.id for b in facts.bindings_in(unit))
    return (is_global and unit.module is home.module) or (len(here) == 1 and here == there)


def _refused(node: ast.AST, why: str) -> NoPlace:
    out = "call amp.initialize where model, optimizer and loader are made, then run migrate again"
    return NoPlace(Refusal(node, "MIG106", why, out))
