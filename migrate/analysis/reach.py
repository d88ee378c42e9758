"""The files that a file leads to, those that lead to it, and those that stand together."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from migrate.analysis.units import Module

    Steps = Mapping[Module, set[Module]]  # one step from each


class Reach:
    """Which modules of a program lead to which, over any number of steps.

    A module leads to those of the project that it imports or has values of.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        self._modules = modules
        self._known: dict[Module, frozenset[Module]] = {}

    def of(self, module: Module) -> frozenset[Module]:
        """The module, and those that it leads to."""
        if module not in self._known:
            self._known[module] = _spread([module], self._forward)
        return self._known[module]

    def back(self, modules: Iterable[Module]) -> frozenset[Module]:
        """The modules, and those that lead to one of them: for many modules far faster than to ask each of them."""
        return _spread(modules, self._backward)

    def around(self, module: Module) -> frozenset[Module]:
        """Those that lead to one or are led to, with steps in both directions."""
        return _spread([module], self._forward, self._backward)

    @cached_property
    def _forward(self) -> Steps:
        return {module: set(_direct(module)) for module in self._modules}

    @cached_property
    def _backward(self) -> Steps:
        found: dict[Module, set[Module]] = {}
        for module, others in self._forward.items():
            for other in others:
                found.setdefault(other, set()).add(module)
        return found


def _direct(module: Module) -> Iterable[Module]:
    yield from module.imports
    yield from (v.unit.module for held in module.names.values() for v in held if v.unit is not None)


def _spread(starts: Iterable[Module], *steps: Steps) -> frozenset[Module]:
    found: set[Module] = set()
    waiting = [*starts]
    while waiting:
        last = waiting.pop()
        if last not in found:
            found.add(last)
            for step in steps:
                waiting.extend(step.get(last, ()))
    return frozenset(found)
