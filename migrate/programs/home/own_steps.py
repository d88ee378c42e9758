"""Layers that make their own optimizers and train themselves, several in one place: `[Layer(n) for n in sizes]`.

Nobody has a name for one of them that prepare could give another object: its methods know it as `self`, and a list has
it. Where no loader deals data out, all processes do the same and no gradient needs to be averaged: the layers stay as
they are, and each optimizer is prepared in the `__init__` that makes it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.home.homeless import making_their_own
from migrate.programs.home.homes import Home, find
from migrate.programs.home.outer import widened
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.home.homes import Wanted
    from migrate.programs.loops import LoopFact

_DEEPEST = 6  # calls between what makes the layers and what trains them


def of_layers(facts: Facts, wanted: Wanted, training: Sequence[LoopFact]) -> Home | None:
    """The `__init__` in which the optimizers are prepared, and the code around it, which makes the accelerator."""
    if wanted.loaders or any(loop.loaders for loop in training) or making_their_own(facts, wanted) is None:
        return None
    bare = replace(wanted, models=set())
    home = find(facts, bare)
    if home is None or not isinstance(home.unit, Function) or not home.unit.sets_up or home.is_wide:
        return None
    start: Unit = home.unit
    loops = {loop.unit for loop in training}
    for _ in range(_DEEPEST):
        callers = facts.callers(start) if isinstance(start, Function) else []
        above = {id(call.caller): call.caller for call in callers}
        if len(above) != 1 or any(call.handed is not None for call in callers):
            return None
        (start,) = above.values()
        if not facts.is_editable(start):
            return None
        is_method = isinstance(start, Function) and start.owner is not None
        if not is_method and loops <= reached(facts, [start]):
            entry = min((call.node for call in callers), key=lambda node: node.lineno)
            return Home(home.unit, *widened(facts, start, entry, bare))
    return None
