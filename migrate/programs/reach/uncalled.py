"""Functions that nothing which was read calls: what they are handed is not known."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import Function

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact


def nobody_gives(facts: Facts, loop: LoopFact) -> str | None:
    """The parameter that a loop runs over, of a function that nothing calls; None: it runs over something else."""
    unit = loop.unit
    if not is_uncalled(facts, unit) or not isinstance(loop.node, (ast.For, ast.AsyncFor)):
        return None
    assert isinstance(unit, Function)
    names = {node.id for node in ast.walk(loop.node.iter) if isinstance(node, ast.Name)}
    return min((name for name in names & {*unit.parameter_names} if not unit.parameters.get(name)), default=None)


def is_uncalled(facts: Facts, unit: Unit) -> bool:
    """Whether a unit is a function that nothing which was read calls."""
    return isinstance(unit, Function) and not isinstance(unit.node, ast.Lambda) and not facts.callers(unit)


def called(unit: Unit) -> str:
    """A function as it is called, `train()`, `Trainer.fit()`; of a module its path."""
    if not isinstance(unit, Function):
        return unit.path
    owner = f"{unit.owner.node.name}." if unit.owner is not None else ""
    return f"{owner}{unit.name}()"
