"""What an object holds by the time one of its methods enters another one.

    def __init__(self):
        self.build_data()                 # here there is no self.model to prepare a loader with
        self.model = Net()

A method finds what was set above the call that enters it first; one that no method enters finds all. Another method
than the `__init__` may come after others: what it enters lacks only what it alone sets, further down.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING, TypeGuard

from migrate.analysis.syntax import blocks, line_of, own_expressions, walk
from migrate.analysis.units import Function
from migrate.programs.reach.callees import leading
from migrate.programs.values.sources import by_attribute

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def is_there(facts: Facts, unit: Unit, targets: Collection[str]) -> bool:
    """Whether a method finds attributes of its object, `self.model`, whatever enters it."""
    wanted = {target.split(".")[1].partition("[")[0] for target in targets if target.startswith("self.")}
    if not wanted or not isinstance(unit, Function):
        return True
    for method in _leading(facts, unit):
        way = _Way(facts, unit)
        if way.enters(method) and (missing := wanted - way.held):
            if method.sets_up or any(_is_set_by(facts, method, name) for name in missing):
                return False
    return True


def is_set_below(facts: Facts, unit: Unit, target: str, made: Collection[ast.AST]) -> bool:
    """Whether an object that a function is handed gets one of its attributes only below the call: `args.loader`."""
    owner, _, attribute = target.partition(".")
    if not isinstance(unit, Function) or owner not in unit.parameter_names or not attribute.isidentifier():
        return False
    if unit.itself is not None and owner == unit.itself.arg:
        return False  # what its own object has by then is another question (`is_there`)
    above = leading(facts, [unit])
    return any(
        each.unit in above
        and each.unit is not unit
        and any(value.origin in made for value in each.values)
        and all(each.statement.lineno > line_of(call) for call in _calls_to(facts, each.unit, above))
        for each in facts.once(by_attribute).get(attribute, ())
    )


def _calls_to(facts: Facts, unit: Unit, above: Collection[Unit]) -> list[ast.Call]:
    """The calls of a unit that lead to one that it is above of."""
    calls = (node for node in facts.own(unit) if isinstance(node, ast.Call))
    return [call for call in calls if any(target in above for target in facts.targets(call))]


def _is_set_by(facts: Facts, method: Function, name: str) -> bool:
    """Whether what a method runs sets an attribute of its object, and nothing else does."""
    way = _Way(facts, method)
    way.runs(method, method.body)
    if name not in way.held:
        return False
    related = {unit for unit in facts.once(_Setters).of[name] if _is_of_one_object(unit, method)}
    return related <= way.setters[name] and all(unit is method or way.is_only_entered_here(unit) for unit in related)


def set_below(facts: Facts, init: Function) -> dict[str, tuple[ast.stmt, ...]]:
    """The attributes that an object is given by what its `__init__` alone calls, with the statements that do so."""
    found: dict[str, tuple[ast.stmt, ...]] = {}
    for statement in init.body:
        way = _Way(facts, init)
        way.runs(init, [statement])
        own = {node.attr for node in walk(statement) if init.itself is not None and _is_set(node, init.itself.arg)}
        for name in way.held - own:
            if all(way.is_only_entered_here(setter) for setter in way.setters[name]):
                found[name] = (*found.get(name, ()), statement)
    return found


def _leading(facts: Facts, unit: Function) -> set[Function]:
    """The methods of a method's object that lead to it."""
    found: set[Function] = set()
    seen: set[Unit] = set()
    waiting: list[Unit] = [unit]
    while waiting:
        each = waiting.pop()
        if each in seen or not isinstance(each, Function):
            continue
        seen.add(each)
        if each is not unit and _is_of_one_object(each, unit):
            found.add(each)
        waiting += [call.caller.original for call in facts.callers(each)]
    return found


def _is_of_one_object(one: Function, other: Function) -> bool:
    """Whether two methods may have the same object."""
    return one.owner is not None and other.owner is not None and one.owner.is_related(other.owner)


class _Setters:
    """The methods that set each attribute of their own object."""

    def __init__(self, facts: Facts) -> None:
        self.of: defaultdict[str, set[Function]] = defaultdict(set)
        for unit in facts.functions:
            if (itself := unit.itself) is not None:
                for node in facts.own(unit).of(ast.Attribute):
                    if _is_set(node, itself.arg):
                        self.of[node.attr].add(unit.original)


class _Way:
    """The way to a method of an object, in the order in which statements run, and what the object is given on it."""

    def __init__(self, facts: Facts, to: Function) -> None:
        self._facts = facts
        self._to = to
        self._seen: set[Function] = set()
        self.held: set[str] = set()  # in any case
        self.setters: dict[str, set[Function]] = {}

    def enters(self, function: Function) -> bool:
        """Whether a function comes to the method; what it sets until then, or in all, is held."""
        if function is self._to:
            return True
        if function in self._seen:
            return False
        self._seen.add(function)
        return self.runs(function, function.body)

    def runs(self, function: Function, body: Sequence[ast.stmt]) -> bool:
        """The same for statements of a function."""
        for statement in body:
            parts = [node for part in own_expressions(statement) for node in walk(part)]
            calls = (node for node in parts if isinstance(node, ast.Call))
            if any(self.enters(target.original) for call in calls for target in self._facts.targets(call)):
                return True
            if (itself := function.itself) is not None and _is_of_one_object(function, self._to):
                for node in (node for node in parts if _is_set(node, itself.arg)):
                    self.held.add(node.attr)
                    self.setters.setdefault(node.attr, set()).add(function)
            if self._branches(function, statement):
                return True
        return False

    def is_only_entered_here(self, function: Function) -> bool:
        """Whether nothing else than what runs on the way calls a function."""
        on_way = {*self._seen, self._to}
        return all(call.caller.original in on_way for call in self._facts.callers(function))

    def _branches(self, function: Function, statement: ast.stmt) -> bool:
        """The blocks of a statement: of an `if` is held what both sides set."""
        before, sides = set(self.held), []
        for block in blocks(statement):
            self.held = set(before)
            if self.runs(function, block):
                return True
            sides.append(self.held)
        if isinstance(statement, ast.If):
            self.held = set.intersection(*sides) if statement.orelse else before
        else:
            self.held = before.union(*sides)
        return False


def _is_set(node: ast.AST, owner: str) -> TypeGuard[ast.Attribute]:
    is_stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    return is_stored and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == owner
