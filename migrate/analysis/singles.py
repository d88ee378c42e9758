"""Whether a place that makes objects makes one of them, or several that have only one name in the analysis.

A value is told by where it was made. In `[DataLoader(d) for d in sets]`, in a function that is run once for all its
callers, or in the `__init__` of a class with two objects, one place stands for several: what holds for the one that was
looked at need not hold for the others. Asked is always for one run of a unit, the home of a program.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.entrances import are_apart
from migrate.analysis.members import PROPERTIES, decorators
from migrate.analysis.roles import Role
from migrate.analysis.state import Round
from migrate.analysis.syntax import COMPREHENSIONS, FUNCTIONS, Tree
from migrate.analysis.units import Class, Function, Module, Unit
from migrate.analysis.unpacking import keeping, owners

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import State

_OBJECTS = frozenset({Role.MODEL, Role.OPTIMIZER, Role.SCHEDULER, Role.LOADER})
_DEEPEST = 12  # calls inside calls


def _is_entered_unseen(unit: Function) -> bool:
    """Whether a function is entered without a call that names it: a lambda, a property, `__getitem__`."""
    return isinstance(unit.node, ast.Lambda) or unit.name[:2] == "__" or bool(decorators(unit) & PROPERTIES)


def _decorating(unit: Unit) -> Sequence[ast.expr]:
    """What decorates a function: `main()` of one that is decorated as an entry runs it once."""
    return getattr(unit.original.node, "decorator_list", ()) if isinstance(unit.original, Function) else ()


@dataclass(frozen=True, slots=True)
class _Way:
    """One way up from where something is made: whether it comes by the home, and what repeats it."""

    is_home: bool
    again: ast.AST | None


class Singles:
    """How many objects a place makes."""

    def __init__(self, facts: Facts, state: State) -> None:
        self._facts = facts
        self._state = state
        self._kept: dict[ast.AST, set[ast.AST]] = {}

    def again(self, origin: ast.AST, home: Unit, inside: ast.AST) -> ast.AST | None:
        """What makes a place make several objects in one run of `home`: a loop, a comprehension, a further call.

        Loops that hold `inside`, a node of the home, go on with it: each round has an object of its own. None: there
        is one object.
        """
        unit = self._maker(origin)
        if unit is None:
            return None
        around = {*self._facts.tree(inside).up(inside), *self._around(home, set()), *self._turned(origin)}
        return self._way(self._facts.source(origin), unit, home, around, ()).again

    def entered_again(self, unit: Unit, origin: ast.AST) -> ast.AST | None:
        """What enters a unit once more with an object that was made before: a loop, a further call; None: nothing."""
        maker = self._facts.unit(self._facts.source(origin))
        around = {*self._facts.tree(origin).up(self._facts.source(origin)), *self._around(maker, set())}
        return self._again(unit, maker, around, origin, {})

    def runs_again(self, node: ast.AST, seen: set[Unit] | None = None) -> bool:
        """Whether code may run more than once: in a loop, or in a function that a loop or several calls enter."""
        seen = set() if seen is None else seen  # the functions above that were asked
        unit = self._facts.unit(node).original
        if self._repeated(node, ()) is not None:
            return True
        if not isinstance(unit, Function) or unit in seen:
            return False
        seen.add(unit)
        calls = [call for call in self._facts.callers(unit) if call.node not in _decorating(unit)]
        together = (
            (one.node, other.node)
            for i, one in enumerate(calls)
            for other in calls[i + 1 :]
            if not are_apart(self._facts, one.caller, other.caller)
        )
        return (
            any(call.handed is not None and call.handed.often for call in calls)
            or any(not self._is_either(one, other) for one, other in together)
            or any(self.runs_again(call.node, seen) for call in calls)
        )

    def _again(
        self, unit: Unit, maker: Unit, around: Container[ast.AST], origin: ast.AST, known: dict[Unit, ast.AST | None]
    ) -> ast.AST | None:
        """Each unit is looked at once; one that is come to again while it is looked at enters itself."""
        if unit not in known:
            known[unit] = getattr(unit, "node", None)
            known[unit] = self._again_by(unit, maker, around, origin, known)
        return known[unit]

    def _again_by(
        self, unit: Unit, maker: Unit, around: Container[ast.AST], origin: ast.AST, known: dict[Unit, ast.AST | None]
    ) -> ast.AST | None:
        if unit is maker or not isinstance(unit, Function) or self._makes(unit, maker, origin):
            return None
        calls = self._facts.callers(unit)
        if not calls:
            return unit.node
        calls = [call for call in calls if call.node not in _decorating(unit)] or calls
        sites = [call.node for call in calls if self.hands(call.node, origin)] or [call.node for call in calls]
        if any(call.handed is not None and call.handed.often for call in calls) or not self._are_exclusive(sites):
            return sites[-1]
        for call in calls:
            if call.node in sites:
                again = self._repeated(call.node, around)
                again = again or self._again(call.caller, maker, around, origin, known)
                if again is not None:
                    return again
        return None

    def _makes(self, unit: Function, maker: Unit, origin: ast.AST) -> bool:
        """Whether each run of a unit makes its own object: it calls what makes it, and is not handed one."""
        if origin not in self._kept:
            self._kept[origin] = keeping(self._owners, origin)
        keeping_it = self._kept[origin]
        if any(value.origin in keeping_it for values in unit.parameters.values() for value in values):
            return False
        return unit in self._callers(maker)

    def _callers(self, unit: Unit) -> set[Unit]:
        """A function, those that call it, and so on."""
        found: set[Unit] = set()
        waiting: list[Unit] = [unit.original]
        while waiting:
            caller = waiting.pop()
            if isinstance(caller, Function) and caller not in found:
                found.add(caller)
                waiting += [call.caller.original for call in self._facts.callers(caller)]
        return found

    def is_made_in(self, unit: Unit, origin: ast.AST) -> bool:
        """Whether a unit makes an object, itself or by what it calls."""
        maker = self._facts.unit(self._facts.source(origin))
        return unit is maker or unit in self._callers(maker)

    @cached_property
    def _owners(self) -> dict[ast.AST, set[ast.AST]]:
        return owners(self._state)

    def hands(self, call: ast.Call, origin: ast.AST) -> bool:
        """Whether a call passes an object on, or is made on what holds it."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        given += [call.func.value] if isinstance(call.func, ast.Attribute) else []
        values = frozenset().union(*(self._facts.values(each) for each in given))
        holders = {value.origin for value in values if value.origin is not None}
        return origin in holders or any(holder in holders for holder, _ in self._holders.get(origin, ()))

    def holders(self, origin: ast.AST) -> set[tuple[ast.AST, str]]:
        """The objects that hold an object, each with the attribute or key."""
        return self._holders.get(origin, set())

    @cached_property
    def _holders(self) -> dict[ast.AST, set[tuple[ast.AST, str]]]:
        found: dict[ast.AST, set[tuple[ast.AST, str]]] = {}
        for owner, holding in self._state.heap.items():
            for key, values in holding.items() if not isinstance(owner, ast.ClassDef) else ():
                for value in values if key[:1] != "<" else ():
                    if value.origin is not None and value.role in _OBJECTS:
                        found.setdefault(value.origin, set()).add((owner, key))
        return found

    def _maker(self, origin: ast.AST) -> Unit | None:
        """The unit, or the copy of it, that makes an object."""
        if origin in self._copies:
            apart = self._copies[origin]
            return apart.unit if isinstance(apart, Round) else apart
        return self._state.calls.get(origin)  # type: ignore[call-overload, no-any-return]

    def turns(self, origin: ast.AST) -> dict[ast.AST, str]:
        """The loops and comprehensions of which one round makes an object, also by what it calls, with its key."""
        found: dict[ast.AST, str] = {}
        for _ in range(_DEEPEST):
            turn, unit = self._copies.get(origin), self._maker(origin)
            while isinstance(turn, Round):
                found[turn.node] = turn.key
                turn = turn.outer
            entries = self._entries.get(unit, []) if unit is not None else []
            if len(entries) != 1:
                break
            origin = entries[0][0]
        return found

    @cached_property
    def by_key(self) -> frozenset[ast.AST]:
        """The loops and comprehensions that are run once for each of their keys."""
        return frozenset(node for node, _, _ in self._state.rounds)

    def _turned(self, origin: ast.AST) -> Iterator[ast.AST]:
        """The loops and comprehensions over keys that are written out of which only one round makes an object."""
        turn = self._copies.get(origin)
        while isinstance(turn, Round):
            yield turn.node
            turn = turn.outer

    @cached_property
    def _copies(self) -> dict[ast.AST, Unit | Round]:
        return {made: unit for (_, unit), made in self._state.twins.items() if not isinstance(unit, Class)}

    @cached_property
    def _entries(self) -> dict[Unit, list[tuple[ast.Call, Unit]]]:
        """Who enters each unit, or each copy of one: the calls, with the unit or copy that makes them."""
        found: dict[Unit, list[tuple[ast.Call, Unit]]] = {}
        for (site, caller, _), unit in self._state.entered.items():
            found.setdefault(unit, []).append((site, caller))
        for one, entries in found.items():
            found[one] = [entry for entry in entries if entry[0] not in _decorating(one)] or entries
        return found

    def _around(self, home: Unit, seen: set[Unit]) -> set[ast.AST]:
        """What stands around the calls of a unit, and around those of its callers."""
        callers = self._facts.callers(home) if isinstance(home, Function) and home not in seen else ()
        seen.add(home)
        found: set[ast.AST] = set()
        for call in callers:
            found |= {*self._facts.tree(call.node).up(call.node), *self._around(call.caller, seen)}
        return found

    def _way(
        self,
        node: ast.AST,
        unit: Unit,
        home: Unit,
        around: AbstractSet[ast.AST],
        seen: tuple[Unit, ...],
        of: Class | None = None,
    ) -> _Way:
        """The way up from a node of a unit; `of` is the class of the object that the unit is a method of."""
        is_home = unit.original is home
        again = self._repeated(node, around)
        if again is not None or is_home or isinstance(unit, Module):
            return _Way(is_home, again)
        of = of if of is not None or not isinstance(unit, Function) else unit.owner
        entries = [(*entry, _receiver(entry, of)) for entry in self._entries.get(unit, []) if _can_enter(entry, of)]
        if not entries:
            return _Way(is_home=False, again=unit.node if _is_entered_unseen(unit) else None)
        if unit in seen or len(seen) >= _DEEPEST:
            return _Way(is_home=False, again=entries[0][0])
        for site, _, _ in entries:
            if self._facts.called(site) and unit.original not in self._facts.targets(site):
                if not self._is_handed_once(unit.original, site):
                    return _Way(is_home=False, again=site)  # `map` and its like call it as often as they will
        ways = [
            (site, self._way(site, caller, home, {*around, *self._turned(site)}, (*seen, unit), receiver))
            for site, caller, receiver in entries
        ]
        ways = [pair for pair in ways if pair[1].is_home] or self._of_its_script(home, ways)
        first = next((way for _, way in ways if way.again is not None), ways[0][1])
        if first.again is None and not self._are_exclusive([site for site, _ in ways]):
            return _Way(first.is_home, ways[1][0])
        return first

    def _of_its_script(self, home: Unit, ways: list[tuple[ast.Call, _Way]]) -> list[tuple[ast.Call, _Way]]:
        """The ways without those of scripts that never come to the home: what a demo makes, no run of it meets."""
        return [way for way in ways if not are_apart(self._facts, self._facts.unit(way[0]), home)] or ways

    def _is_handed_once(self, unit: Unit, site: ast.Call) -> bool:
        """`fire.Fire(main)`, which calls the function with what the command line says."""
        calls = self._facts.callers(unit) if isinstance(unit, Function) else []
        handed = [call.handed for call in calls if call.node is self._facts.source(site) and call.handed is not None]
        return bool(handed) and not any(each.often for each in handed)

    def _repeated(self, node: ast.AST, around: Container[ast.AST]) -> ast.AST | None:
        """The loop or comprehension of the same function that runs a node again and again."""
        tree = self._facts.tree(node)
        loop = next((loop for loop in tree.loops(node) if loop not in around), None)
        if loop is not None:
            return loop
        below = node
        for above in tree.up(node):
            if isinstance(above, (*FUNCTIONS, ast.stmt)):
                return None
            if above in around:
                below = above
                continue
            if isinstance(above, COMPREHENSIONS) and below is not above.generators[0]:
                return above
            if isinstance(above, ast.comprehension) and below is not above.iter:
                return above.iter
            below = above
        return None

    def _are_exclusive(self, sites: Sequence[ast.Call]) -> bool:
        """Whether only one of several calls is made, or comes to its end: each returns, or stands in another branch."""
        return all(self._is_either(one, other) for i, one in enumerate(sites) for other in sites[i + 1 :])

    def _is_either(self, one: ast.Call, other: ast.Call, depth: int = 4) -> bool:
        tree = self._facts.tree(one)
        if other not in tree or tree.function(one) is not tree.function(other):
            return (
                self._lead_apart(one, other)
                or self._lead_apart(other, one)
                or self._are_of_one_choice(one, other)
                or self._is_either_above(one, other, depth)
            )
        if all(isinstance(tree.statement(site), ast.Return) for site in (one, other)):
            return tree.statement(one) is not tree.statement(other)
        for above in tree.up(one):
            if isinstance(above, ast.If) and tree.in_block(one, above.body) and tree.in_block(other, above.orelse):
                return True
            if isinstance(above, ast.If) and tree.in_block(one, above.orelse) and tree.in_block(other, above.body):
                return True
            if isinstance(above, ast.Try) and (
                _is_retry(tree, above, one, other) or _is_retry(tree, above, other, one)
            ):
                return True
        return False

    def _are_of_one_choice(self, one: ast.Call, other: ast.Call) -> bool:
        """Whether one call, which makes an object of one class or another, leads to each of two by a class of its own.

        `trainer = trainers[args.name](args)`, where each trainer calls the `__init__` of a common base.
        """
        above = [self._made_by(one), self._made_by(other)]
        chosen = above[0] if above[0] is above[1] else one if above[1] is one else other if above[0] is other else None
        return chosen is not None and all(v.role is Role.CLASS for v in self._facts.values(chosen.func))

    def _made_by(self, site: ast.Call) -> ast.Call | None:
        """The one call that makes an object in whose `__init__` a call stands."""
        unit = self._facts.unit(site)
        calls = self._facts.callers(unit) if isinstance(unit, Function) and unit.sets_up else []
        return calls[0].node if len(calls) == 1 and calls[0].handed is None else None

    def _lead_apart(self, one: ast.Call, other: ast.Call) -> bool:
        """Whether one call, and all that lead to the other from the same function, exclude each other."""
        unit = self._facts.unit(one)
        found: list[ast.Call] = []
        seen: set[Unit] = set()
        waiting = [self._facts.unit(other)]
        while waiting:
            inner = waiting.pop()
            if not isinstance(inner, Function) or not self._facts.callers(inner):
                return False
            seen.add(inner)
            calls = self._facts.callers(inner)
            found += [call.node for call in calls if call.caller.original is unit]
            waiting += [c.caller.original for c in calls if c.caller.original is not unit and c.caller not in seen]
        return bool(found) and all(self._is_either(one, call) for call in found)

    def _is_either_above(self, one: ast.Call, other: ast.Call, depth: int) -> bool:
        """Whether all calls that lead to one of two calls in different functions exclude the other."""
        unit = self._facts.unit(one)
        calls = self._facts.callers(unit) if isinstance(unit, Function) and unit.sets_up else []
        return depth > 0 and bool(calls) and all(self._is_either(call.node, other, depth - 1) for call in calls)


def _class_inside(entry: tuple[ast.Call, Unit]) -> Class | None:
    """The class of which a method calls another of the same object: `self.build()`, `super().__init__(args)`."""
    site, caller = entry
    if not isinstance(caller, Function) or not isinstance(site.func, ast.Attribute):
        return None
    on = site.func.value
    if isinstance(on, ast.Call):
        is_own = isinstance(on.func, ast.Name) and on.func.id == "super"
    else:
        is_own = isinstance(on, ast.Name) and bool(caller.positional) and on.id == caller.positional[0].arg
    return caller.owner if is_own else None


def _can_enter(entry: tuple[ast.Call, Unit], of: Class | None) -> bool:
    """Whether a call can be one on an object of a class: not where a class beside it calls what both derive from."""
    inside = _class_inside(entry)
    return of is None or inside is None or of.is_related(inside)


def _receiver(entry: tuple[ast.Call, Unit], of: Class | None) -> Class | None:
    """The class of the object on whose behalf a method makes the call; None: it is not known."""
    inside = _class_inside(entry)
    return None if of is None or inside is None else of if inside in of.mro() else inside


def _is_retry(tree: Tree, block: ast.Try, one: ast.Call, other: ast.Call) -> bool:
    """Whether a handler makes the other call where the first has failed: nothing behind that could have failed."""
    return tree.in_block(one, block.body[-1:]) is not None and any(
        tree.in_block(other, handler.body) is not None for handler in block.handlers
    )
