"""The flag behind a flag: what `use_cuda` was put together from, where the accelerator must be made above it.

    net = Net()                                           # draws weights that all processes must have
    use_cuda = torch.cuda.is_available() and args.cuda

The accelerator that stands above the first draw is told `cpu=not args.cuda`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.programs.values.conditions import flag, needs

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_DEEPEST = 4  # names that stand for one


def behind(facts: Facts, start: Unit, cpu: str, required: frozenset[str]) -> tuple[str, frozenset[str]]:
    """A condition for the CPU, and the names that it needs, in flags that are there before a unit sets its own."""
    for _ in range(_DEEPEST):
        for name in sorted(required):
            rest = _given(facts, start, name)
            if rest is None:
                continue
            told, count = re.subn(rf"(?<![\w.]){re.escape(name)}(?![\w.])", ast.unparse(rest), cpu)
            if count:
                cpu, required = told, (required - {name}) | frozenset(needs(rest))
                break
        else:
            break
    return cpu, required


def _given(facts: Facts, start: Unit, name: str) -> ast.expr | None:
    """The one flag that a unit puts into another, beside the question for a GPU."""
    found = [binding.statement for binding in facts.bindings_in(start) if binding.target == name]
    if len(found) != 1 or not isinstance(found[0], ast.Assign) or len(found[0].targets) != 1:
        return None
    rest = flag(facts, found[0].value)
    return rest if isinstance(rest, (ast.Name, ast.Attribute)) and ast.unparse(rest) != name else None
