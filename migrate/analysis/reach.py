"""The files that a file leads to, and those that stand together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def connected(modules: Iterable[Module], start: Module) -> frozenset[Module]:
    """The modules that lead to one of them or are led to, over any number of steps and in both directions."""
    near: dict[Module, set[Module]] = {}
    for module in modules:
        for other in reach(module):
            near.setdefault(module, set()).add(other)
            near.setdefault(other, set()).add(module)
    found: set[Module] = set()
    waiting = [start]
    while waiting:
        last = waiting.pop()
        if last not in found:
            found.add(last)
            waiting.extend(near.get(last, ()))
    return frozenset(found)
