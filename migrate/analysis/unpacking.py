"""Taking values apart: `a, (b, *rest) = values`, and what stands at a position or under a key."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, NOTHING, Role, Value, Values
from migrate.analysis.state import ELEMENT, MAPPING, MIXED, Frame, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Each part of one of these is one of these.
_ALIKE = FROM_LOADER | {Role.PARAMETERS, Role.CHECKPOINT, Role.TENSOR, Role.DATASET}  # random_split gives data sets
_DEPTH = 3  # so deep a batch may lie in what is passed: a tuple of dictionaries of batches
_INSIDE = "<inside>"  # key of the agenda: what a container holds, directly or not
_HOLDING = frozenset({Role.CONTAINER, Role.ITERATOR, Role.UNKNOWN})


def unpack(state: State, target: ast.expr, values: Values, frame: Frame) -> None:
    """Give the names of a `for` or comprehension target their values, without a binding of a statement."""
    if isinstance(target, ast.Name):
        frame.names[target.id] = values
        state.record(target, values)
    elif isinstance(target, ast.Starred):
        unpack(state, target.value, values, frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for inner, share in zip(target.elts, shares(state, target.elts, values), strict=True):
            unpack(state, inner, share, frame)


def shares(state: State, targets: Sequence[ast.expr] | Sequence[ast.pattern], values: Values) -> list[Values]:
    """What each target of an unpacking gets, or each part of a pattern; one with a star gets a list."""
    star = next((n for n, target in enumerate(targets) if isinstance(target, (ast.Starred, ast.MatchStar))), None)
    if star is None:
        values = _fitting(state, values, len(targets)) or values
        return [element_of(state, values, position) for position in range(len(targets))]
    behind = len(targets) - star - 1
    return [
        *(element_of(state, values, position) for position in range(star)),
        _starred(state, targets[star], values, star, behind),
        *(_from_the_end(state, values, distance) for distance in range(behind, 0, -1)),
    ]


def _fitting(state: State, values: Values, count: int) -> Values:
    """The values without tuples of another length: `a, b = load()` is for the calls that return two."""
    others = {v for v in values if isinstance(v.origin, ast.Tuple) and v.role is Role.CONTAINER}
    return values - {value for value in others if length_of(state, value) not in (None, count)}


def _starred(state: State, target: ast.AST, values: Values, before: int, behind: int) -> Values:
    """A list of what is left."""
    for value in values:
        if value.role in _HOLDING and value.origin is not None:
            length = length_of(state, value)
            if length is None:
                state.store(target, ELEMENT, state.iterated([value]))
            for position in range(before, (length or 0) - behind):
                state.store(target, str(position - before), state.load(value.origin, str(position)))
    alike = frozenset(value for value in values if value.role in _ALIKE)
    return alike if alike and len(alike) == len(values) else alike | {Value(Role.CONTAINER, target)}


def _from_the_end(state: State, values: Values, distance: int) -> Values:
    found: set[Value] = set()
    for value in values:
        length = length_of(state, value) if value.role in _HOLDING else None
        if length is not None and value.origin is not None:
            found |= state.load(value.origin, str(length - distance))
        else:
            found |= frozenset({value}) if value.role in _ALIKE else state.iterated([value])
    return frozenset(found)


def length_of(state: State, value: Value) -> int | None:
    """How many elements a tuple or list has that is written out; None if that is not known."""
    node = value.origin
    if not isinstance(node, (ast.Tuple, ast.List)) or any(isinstance(element, ast.Starred) for element in node.elts):
        return None
    return None if {ELEMENT, MIXED} & state.held(node).keys() else len(node.elts)


def element_of(state: State, values: Values, position: int) -> Values:
    """What unpacking the values gives at a position."""
    found: set[Value] = set()
    for value in values:
        if value.role in _ALIKE:
            found.add(value)
        elif value.origin is not None and value.role in _HOLDING:
            if value.name != MAPPING:  # that gives its keys
                found |= at(state, value.origin, str(position))
    return frozenset(found)


def at(state: State, owner: ast.AST, position: str) -> Values:
    """What stands at a position of a list or tuple: one that was appended to keeps what it had."""
    if state.load(owner, MIXED):
        return _all_of(state, owner)
    return state.load(owner, position) or state.load(owner, ELEMENT)


def everything(state: State, value: Value) -> Values:
    """All that an object holds under keys, attributes and positions."""
    return NOTHING if value.origin is None else _all_of(state, value.origin)


def _all_of(state: State, owner: ast.AST) -> Values:
    return NOTHING.union(*(held for key, held in state.holding(owner).items() if key[:1] != "<"))


def inside(state: State, values: Iterable[Value], depth: int = _DEPTH) -> set[Value]:
    """The values and what the containers among them hold."""
    found = set(values)
    for value in tuple(found) if depth else ():
        if value.role is Role.CONTAINER and value.origin is not None:
            found |= _inside_of(state, value.origin, depth)
    return found


def _inside_of(state: State, owner: ast.AST, depth: int) -> set[Value]:
    """What a container holds, and what the containers in it hold: worked out once for all that ask."""
    return state.agenda.remembered((owner, _INSIDE, depth), lambda: inside(state, _all_of(state, owner), depth - 1))


def owners(state: State) -> dict[ast.AST, set[ast.AST]]:
    """What holds each object."""
    found: dict[ast.AST, set[ast.AST]] = {}
    for owner, holding in state.heap.items():
        for held in {value.origin for values in holding.values() for value in values if value.origin is not None}:
            found.setdefault(held, set()).add(owner)
    return found


def keeping(owned_by: Mapping[ast.AST, set[ast.AST]], origin: ast.AST) -> set[ast.AST]:
    """An object, what holds it, what holds that, and so on."""
    found = outermost = {origin}
    for _ in range(_DEPTH):
        outermost = {owner for held in outermost for owner in owned_by.get(held, ())} - found
        found = found | outermost
    return found
