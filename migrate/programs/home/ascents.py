"""Where the accelerator is made for a home that hands everything up: `model_arguments, optimizer = create(args)`.

The training is in what calls the home, so the accelerator is made there, and handed down.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact

_DEEPEST = 4  # calls between what trains and what makes the objects


def ascent(facts: Facts, home: Unit, training: Sequence[LoopFact]) -> tuple[Unit, ast.AST | None]:
    """The unit that the home and all training loops are run by, and its call that leads to the home.

    The home itself, and no call, where the loops are run by it, or where there is no one such place.
    """
    wanted = {loop.unit for loop in training}
    start, entry = home, None
    for _ in range(_DEEPEST):
        if wanted <= reached(facts, [start]):
            return start, entry
        if not isinstance(start, Function) or start.owner is not None:
            break
        callers = facts.callers(start)
        if len(callers) != 1 or callers[0].handed is not None or not facts.is_editable(callers[0].caller):
            break
        start, entry = callers[0].caller, callers[0].node
    return home, None
