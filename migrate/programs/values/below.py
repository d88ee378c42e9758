"""The functions that a loop calls, and the places that are the same in them as in the loop's own function.

    for batch in self.loader:
        self.step(batch)                  def step(self, batch):  ...  self.total += loss.item()

These are attributes of `self` in methods that are called on the loop's own object, names of the module, names of a
function around both, and what is in something that is handed over under its name: `step(batch, stats)`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import arguments, walk, writes
from migrate.analysis.units import Function, module_of
from migrate.programs.values.kept import root_of, sets
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


@dataclass(frozen=True, slots=True)
class Below:
    """A function that some code calls, directly or not."""

    unit: Function
    above: Unit  # the function of the code, or its module
    me: str | None  # what both call the object that both are methods of
    handed: frozenset[str] = frozenset()  # what both call an object that the code hands over

    def shares(self, place: str) -> bool:
        """Whether a name, attribute or item, as both write it, is one."""
        root = root_of(place)
        if root == self.me:
            return place != root
        if root in self.handed:
            return True
        return having(self.unit, root) is having(self.above, root)


class _Entered:
    """What code calls, found once for each."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: dict[ast.AST, tuple[Below, ...]] = {}

    def by(self, code: ast.AST) -> tuple[Below, ...]:
        """The functions that some code calls, directly or through one another."""
        if code not in self._found:
            self._found[code] = tuple(self._below(code))
        return self._found[code]

    def _below(self, code: ast.AST) -> Iterator[Below]:
        above = self._facts.unit(code)
        me = object_of(above)
        seen: set[Below] = set()
        waiting: list[tuple[ast.AST, Below | None]] = [(code, None)]
        while waiting:
            root, by = waiting.pop()
            is_own = me is not None and (by is None or by.me == me)
            for call in walk(root).of(ast.Call):
                for unit in self._facts.targets(call):
                    is_mine = is_own and _is_on(call, me) and object_of(unit) == me
                    handed = _handed(call, unit) if by is None else _handed(call, unit) & by.handed
                    found = Below(unit, above, me if is_mine else None, handed)
                    if found not in seen:
                        seen.add(found)
                        waiting.append((unit.node, found))
        yield from sorted(seen, key=_place)


def below(facts: Facts, code: ast.AST) -> tuple[Below, ...]:
    """The functions that some code calls, directly or through one another."""
    return facts.once(_Entered).by(code)


def sharing(facts: Facts, code: ast.AST, name: str) -> Iterator[ast.AST]:
    """The nodes of those functions in which a place is the one of the code's own function."""
    return (node for each in below(facts, code) if each.shares(name) for node in facts.own(each.unit))


def is_handed_on(facts: Facts, code: ast.AST, node: ast.AST, place: str) -> bool:
    """Whether a node only hands a place to functions that have it, too: `stats` in `step(batch, stats)`."""
    parents = facts.tree(node).parents
    call = parents.get(node)
    if isinstance(call, ast.keyword):
        call = parents.get(call)
    if not isinstance(node, ast.Name) or not isinstance(call, ast.Call) or node not in arguments(call):
        return False
    entered, targets = below(facts, code), facts.targets(call)
    return bool(targets) and all(
        any(each.unit is unit and node.id in each.handed and each.shares(place) for each in entered) for unit in targets
    )


def set_below(facts: Facts, code: ast.AST, name: str) -> list[ast.Assign | ast.AnnAssign]:
    """Where the functions that code calls give a place a value that the code's own function has, too."""
    nodes = sharing(facts, code, name)
    return [node for node in nodes if isinstance(node, (ast.Assign, ast.AnnAssign)) and sets(node, name)]


def is_on_own(facts: Facts, call: ast.Call, name: str) -> bool:
    """Whether a method is called on the object whose method the call stands in, and a name is an attribute of it."""
    me = object_of(facts.unit(call))
    targets = facts.targets(call)
    is_same = bool(targets) and all(object_of(unit) == me for unit in targets)
    return me is not None and name.startswith(f"{me}.") and _is_on(call, me) and is_same


def is_handed(facts: Facts, call: ast.Call, unit: Unit, name: str) -> bool:
    """Whether a call hands over what a place is in, or is an item of, under its name."""
    return isinstance(unit, Function) and unit in facts.targets(call) and root_of(name) in _handed(call, unit)


def having(unit: Unit, name: str) -> Unit:
    """The function whose name a name is in another one: that itself, one around it, or its module."""
    above = unit if isinstance(unit, Function) else None
    while above is not None:
        if name in above.names or name in above.parameter_names:
            return above
        above = above.parent
    return module_of(unit)


def object_of(unit: Unit) -> str | None:
    """What a method calls its object, if it is that throughout."""
    if not isinstance(unit, Function) or not unit.has_object or unit.itself is None:
        return None
    return None if unit.itself.arg in writes(unit.node) else unit.itself.arg


def _is_on(call: ast.Call, name: str | None) -> bool:
    function = call.func
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == name


def _handed(call: ast.Call, unit: Function) -> frozenset[str]:
    """The parameters of a function that are given a name that is called as they are, and no other value after that."""
    given = received(call, unit).items()
    names = {name for name, value in given if isinstance(value, ast.Name) and value.id == name}
    return frozenset(names - writes(unit.node)) if names else frozenset()


def _place(found: Below) -> tuple[str, int, bool, list[str]]:
    return found.unit.module.path, found.unit.node.lineno, found.me is not None, sorted(found.handed)
