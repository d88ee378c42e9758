"""The files that a file leads to, and those that stand together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from migrate.analysis.units import Module


def reach(module: Module) -> frozenset[Module]:
    """The module, those of the project that it imports or has values of, those that they import, and so on."""
    return _spread(module, _direct)


def connected(modules: Iterable[Module], start: Module) -> frozenset[Module]:
    """The modules that lead to one of them or are led to, over any number of steps and in both directions."""
    near: dict[Module, set[Module]] = {}
    for module in modules:
        for other in _direct(module):
            near.setdefault(module, set()).add(other)
            near.setdefault(other, set()).add(module)
    return _spread(start, lambda module: near.get(module, ()))


def _direct(module: Module) -> Iterable[Module]:
    yield from module.imports
    yield from (v.unit.module for held in module.names.values() for v in held if v.unit is not None)


def _spread(start: Module, leads_to: Callable[[Module], Iterable[Module]]) -> frozenset[Module]:
    found: set[Module] = set()
    waiting = [start]
    while waiting:
        last = waiting.pop()
        if last not in found:
            found.add(last)
            waiting.extend(leads_to(last))
    return frozenset(found)
