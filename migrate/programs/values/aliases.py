"""What else holds the list or dictionary that code has a name for, in the same function.

    log = logs["train"]                          log = []                       for log in logs.values():
    log.append(loss)      logs['train']          history.append(log)            log.append(loss)
                                                 log.append(loss)   history

Who fills one fills the others, and may read them there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from migrate.analysis.roles import Role, origins
from migrate.analysis.state import ELEMENT
from migrate.analysis.syntax import targets_of, walk
from migrate.analysis.units import Module
from migrate.programs.values.assigned import assigned
from migrate.programs.values.kept import is_place, place_of
from migrate.programs.values.sources import given_by

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value, Values
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit

_CONTAINERS = frozenset({Role.CONTAINER, Role.HOLDER})
_DEEPEST = 3  # containers inside containers


def aliases(facts: Facts, root: ast.AST, places: Collection[str]) -> set[str]:
    """The other places that are what places of some code are, or that it lies in, as its function writes them.

    What is made in the code itself is of one round of it, and not meant.
    """
    named = facts.once(_Named).of(facts.unit(root))
    wanted = {whole for place in places for whole in (place, place.partition("[")[0])}
    met = [each for each in named if each.text in wanted]
    inside = set(walk(root)) if met else set[ast.AST]()
    met = [each for each in met if each.node in inside]
    found: set[str] = set()
    for place in places if met else ():
        base, bracket, item = place.partition("[")
        for whole, behind in {(base, f"{bracket}{item}"), (place, "")}:
            values = {value for each in met if each.text == whole for value in each.values}
            made = origins(frozenset(values), *_CONTAINERS) - inside
            found |= {f"{other}{behind}" for other in _holding(facts, named, made)} if made else set()
    known = found | set(places)
    return {each for each in found - set(places) if each.rpartition("[")[0] not in known}


def rows_of(facts: Facts, target: ast.expr) -> set[str]:
    """What an item lies in by what its row was given: `table` of `row[i]`, where `row = table[epoch]`."""
    whole = target.value if isinstance(target, ast.Subscript) else None
    given = assigned(facts, whole) if isinstance(whole, ast.Name) else ()
    return {place for value in given if isinstance(value, ast.Subscript) for place in place_of(value)}


def outside(
    facts: Facts, root: ast.AST, places: Collection[str], others: Iterable[Unit]
) -> Iterator[tuple[ast.expr, str]]:
    """Where other functions write containers of modules that places of some code are, with the item that is meant."""
    named, inside = facts.once(_Named), set(walk(root))
    made: dict[ast.AST | None, set[str]] = {}
    for each in (each for each in named.of(facts.unit(root)) if each.node in inside):
        behind = {place.removeprefix(each.text) for place in places if place.partition("[")[0] == each.text}
        for value in each.values if behind else ():
            if value.origin is not None and _is_of_module(facts, value.origin):
                made.setdefault(value.origin, set()).update(behind)
    for each in (held for unit in others if made for held in named.of(unit)):
        for item in set[str]().union(*(made.get(value.origin, ()) for value in each.values)):
            yield each.node, f"{each.text}{item}"


def _is_of_module(facts: Facts, origin: ast.AST) -> bool:
    """Whether a container is made by a module itself, once: each object of a class has its own."""
    return facts.holds(origin) and isinstance(facts.unit(facts.source(origin)), Module)


def is_made_for(binding: Binding) -> bool:
    """Whether a name is given a container of its own, `losses = []`, and no other one: `losses = log["train"]`."""
    statement = binding.statement
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or len(targets_of(statement)) > 1:
        return False
    made = given_by(statement, binding.target)
    return all(value.origin is made for value in binding.values)


class _Held(NamedTuple):
    """Where a function writes a place that holds containers."""

    node: ast.expr
    text: str
    values: tuple[Value, ...]


class _Named:
    """The places of functions that hold containers; found once for each."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: dict[Unit, list[_Held]] = {}

    def of(self, unit: Unit) -> list[_Held]:
        """Those of one function."""
        if unit not in self._found:
            self._found[unit] = list(self._in(unit))
        return self._found[unit]

    def _in(self, unit: Unit) -> Iterator[_Held]:
        for node in self._facts.own(unit):
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and is_place(node):
                held = tuple(v for v in self._facts.values(node) if v.role in _CONTAINERS and v.origin is not None)
                if held:
                    yield _Held(node, ast.unparse(node), held)


def _holding(facts: Facts, named: Collection[_Held], made: Container[ast.AST | None]) -> Iterator[str]:
    """The places that are one of the containers made there, or that such a one lies in."""
    for each in named:
        for value in each.values:
            yield from (f"{each.text}{item}" for item in _ways(facts, value, made, _DEEPEST))


def _ways(facts: Facts, value: Value, made: Container[ast.AST | None], depth: int) -> list[str]:
    """What is written behind a container to come to one of those made there, `['train']`; nothing where it is one.

    Nothing, too, where each of several that lie in it is one, or any may be.
    """
    if value.origin in made:
        return [""]
    if value.origin is None or depth == 0:
        return []
    held = {
        key: _inside(facts, values, made, depth)
        for key, values in facts.holding(value.origin).items()
        if key != ELEMENT
    }
    if _inside(facts, facts.held(value.origin, ELEMENT), made, depth) or (len(held) > 1 and all(held.values())):
        return [""]
    named = ((key if key.isdigit() else repr(key), ways) for key, ways in held.items())
    return [f"[{key}]{way}" for key, ways in named for way in ways]


def _inside(facts: Facts, values: Values, made: Container[ast.AST | None], depth: int) -> list[str]:
    return [way for each in values if each.role in _CONTAINERS for way in _ways(facts, each, made, depth - 1)]
