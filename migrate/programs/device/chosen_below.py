"""A device that the training function chooses, for an accelerator that is made in one above it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.device.choices import Choice, choices
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program

_DEEPEST = 4  # calls that hand a name down


def choice_below(facts: Facts, program: Program) -> Choice | None:
    """The device choice of the home that a user's flag decides, where the accelerator is made above."""
    if program.home is program.start or not isinstance(program.home, Function):
        return None
    return next((c for c in choices(facts, program.home) if c.cpu is not None and c.is_clear), None)


def cpu_above(facts: Facts, program: Program, choice: Choice) -> tuple[str, frozenset[str]] | None:
    """The condition for the CPU in the names of the function above; None: one of them cannot be told there."""
    assert choice.cpu is not None
    assert program.start is not None
    cpu, needs = choice.cpu, set(choice.needs)
    for name in sorted({needed.partition(".")[0] for needed in needs} - {"torch"}):
        above = _above(facts, program.start, choice, name)
        if above is None:
            return None
        cpu = re.sub(rf"(?<![\w.]){name}\b", above, cpu)
        needs = {re.sub(rf"^{name}\b", above, needed) for needed in needs}
    return cpu, frozenset(needs) - {"torch", "torch.device"}


def _above(facts: Facts, start: Unit, choice: Choice, name: str) -> str | None:
    """What the function above calls what the home calls so: the argument, passed down by its name."""
    read = (n for s in (choice.outermost, *choice.others) for n in ast.walk(s) if isinstance(n, ast.Name))
    node: ast.expr | None = next((n for n in read if n.id == name and isinstance(n.ctx, ast.Load)), None)
    for _ in range(_DEEPEST):
        if not isinstance(node, ast.Name) or facts.unit(node) is start:
            break
        unit = facts.unit(node)
        if not isinstance(unit, Function) or node.id not in unit.parameter_names:
            return node.id if unit.module is start.module and node.id in unit.module.names else None
        given = facts.once(Sources).given(node)
        is_one = given.complete and len({ast.unparse(expression) for expression in given.expressions}) == 1
        node = given.expressions[0] if is_one else None
    return node.id if isinstance(node, ast.Name) and facts.unit(node) is start else None
