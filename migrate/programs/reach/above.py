"""What comes to a program: the functions that call it, those that call these, and the code of files that does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def units_above(facts: Facts, units: Iterable[Unit]) -> list[Unit]:
    """The units that lead to some, without these, in the order in which they are met."""
    met: dict[Unit, None] = dict.fromkeys(units)
    first, waiting = set(met), list(met)
    while waiting:
        unit = waiting.pop()
        callers = [call.caller for call in facts.callers(unit)] if isinstance(unit, Function) else []
        waiting += (new := [each for each in dict.fromkeys(callers) if each not in met])
        met |= dict.fromkeys(new)
    return [unit for unit in met if unit not in first]
