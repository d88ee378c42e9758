"""The files that a file leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.analysis.units import Module


def reach(module: Module) -> frozenset[Module]:
    """The module, those of the project that it imports or has values of, those that they import, and so on."""
    found: set[Module] = set()
    waiting = [module]
    while waiting:
        last = waiting.pop()
        if last not in found:
            found.add(last)
            waiting.extend(last.imports)
            waiting.extend(v.unit.module for held in last.names.values() for v in held if v.unit is not None)
    return frozenset(found)
