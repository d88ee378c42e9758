"""What code comes to by its calls."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.analysis.units import Function, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts, Use


class Entered(dict["Unit", "tuple[Function, ...]"]):
    """The project's functions that the calls of a unit may enter, each once; `facts.once(Entered)[unit]`."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, unit: Unit) -> tuple[Function, ...]:
        calls = self._facts.own(unit).of(ast.Call)
        self[unit] = tuple(dict.fromkeys(target for call in calls for target in self._facts.targets(call)))
        return self[unit]


def reached(facts: Facts, starts: Iterable[Unit]) -> set[Unit]:
    """Some units, and the functions of the project that their calls lead to, directly or not."""
    found: set[Unit] = set()
    entered = facts.once(Entered)
    waiting: list[Unit] = [*starts]
    while waiting:
        unit = waiting.pop()
        if unit not in found:
            found.add(unit)
            waiting += entered[unit]
    return found


def nested(facts: Facts, unit: Unit) -> Iterator[Function]:
    """The functions that are defined in one, and in these."""
    for inner in facts.nested(unit):
        yield inner
        yield from nested(facts, inner)


def entered(facts: Facts, code: ast.AST) -> Iterator[Function]:
    """The functions of the project that the calls in some code enter, itself alone."""
    return (target for node in walk(code).of(ast.Call) for target in facts.targets(node))


def leading(facts: Facts, units: Iterable[Unit]) -> set[Unit]:
    """Some units, and those whose calls lead to them, directly or not."""
    found: set[Unit] = set()
    waiting: list[Unit] = [*units]
    while waiting:
        unit = waiting.pop()
        if unit not in found:
            found.add(unit)
            waiting += [call.caller for call in facts.callers(unit)] if isinstance(unit, Function) else []
    return found


def upwards(facts: Facts, node: ast.AST, passes: Callable[[ast.AST], bool] = lambda _: True) -> Iterator[ast.AST]:
    """A node, and the calls that lead to it, directly or not; none above one that does not pass.

    Each function is left once, however many ways lead to it: in a large project these are without number.
    """
    waiting, seen = [node], set[Unit]()
    while waiting:
        yield (here := waiting.pop())
        unit = facts.unit(here)
        if isinstance(unit, Function) and unit not in seen and passes(here):
            seen.add(unit)
            waiting += reversed([call.node for call in facts.callers(unit)])


def on_all_ways(facts: Facts, node: ast.AST, said: Callable[[ast.AST], bool | None], *, again: bool = False) -> bool:
    """Whether each way up from a node comes to a place of which `said` says yes; None: it is asked further up.

    A way that comes to what nobody calls says no; one that comes back to where it was says `again`. Each function is
    looked at once.
    """
    known: dict[Unit, bool] = {}

    def holds(here: ast.AST) -> bool:
        if (answer := said(here)) is not None:
            return answer
        unit = facts.unit(here)
        if unit not in known:
            known[unit] = again
            calls = facts.callers(unit) if isinstance(unit, Function) else ()
            known[unit] = bool(calls) and all(holds(call.node) for call in calls)
        return known[unit]

    return holds(node)


def uses_reached(facts: Facts, uses: Collection[Use]) -> list[Use]:
    """Some calls, and those that they lead to, in files that are not edited, too."""
    found = reached(facts, (target for use in uses for target in facts.targets(use.node)))
    known = {use.node for use in uses}
    return [*uses, *(use for use in facts.calls_anywhere if use.unit in found and use.node not in known)]


class Reaching:
    """Whether functions have something, or come to one that has it by what they enter: each is looked into once."""

    def __init__(self, has: Callable[[Function], bool], entered: Callable[[Function], Iterable[Function]]) -> None:
        self._has = has
        self._entered = entered
        self._own: dict[Function, bool] = {}
        self._known: dict[Function, bool] = {}

    def __call__(self, unit: Function) -> bool:
        """Whether a function does."""
        if unit not in self._known:
            seen = {unit: None}
            waiting = [unit]
            while waiting:
                each = waiting.pop()
                if self._known.get(each) or self._looked_into(each):
                    self._known[each] = self._known[unit] = True
                    return True
                others = (other for other in self._entered(each) if self._known.get(other) is not False)
                new = dict.fromkeys(other for other in others if other not in seen)
                seen |= new
                waiting += new
            self._known.update(dict.fromkeys(seen, False))  # whatever these come to was looked into
        return self._known[unit]

    def _looked_into(self, unit: Function) -> bool:
        if unit not in self._own:
            self._own[unit] = self._has(unit)
        return self._own[unit]


def called_alike(facts: Facts, unit: Function) -> set[Function]:
    """A function with those that the same calls enter, `callback.on_epoch_end()`, and so on."""
    found: set[Function] = set()
    waiting = [unit]
    while waiting:
        if (each := waiting.pop()) not in found:
            found.add(each)
            waiting += [other for call in facts.callers(each) for other in facts.targets(call.node)]
    return found
