"""From which files code is entered, and which code never runs in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis.units import Function, Module

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def entered_from(facts: Facts, unit: Unit) -> frozenset[Module]:
    """The modules whose own code leads to a unit; that of a function which nothing calls is its own."""
    found: set[Module] = set()
    waiting, seen = [unit.original if isinstance(unit, Function) else unit], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Module):
            found.add(current)
            continue
        above = [call.caller for call in facts.callers(current)]
        above += [current.parent] if not above and current.parent is not None else []
        found |= {current.module} if not above else set()
        waiting += [caller.original if isinstance(caller, Function) else caller for caller in above]
    return frozenset(found)


def are_apart(facts: Facts, one: Unit, other: Unit) -> bool:
    """Whether two units belong to different scripts: no file leads to what enters the one and what enters the other."""
    back = facts.reach.back
    return back(entered_from(facts, one)).isdisjoint(back(entered_from(facts, other)))
