"""What running over an object gives: a loader, a container, an iterator, an object of the project."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from migrate.analysis.entry import invoke, loaders_of
from migrate.analysis.roles import FROM_LOADER, NOTHING, NUMBER, ROWS, Role, Value, Values, of_role
from migrate.analysis.state import ELEMENT, OVER, Frame, State
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from migrate.analysis.arguments import Arguments

_RUN_BY = ("__iter__", "__getitem__")
_LOADERS = "<loaders>"  # key of the agenda: those that an object holds, also by others
_DEEPEST = 3  # objects between one that is run over and the loader that it holds


def iterate(state: State, values: Values) -> Values:
    """What iterating over the values gives."""
    found = state.iterated(values)
    for value in values:
        if value.role is Role.INSTANCE:
            found |= _of_object(state, value)
    return found


def _of_object(state: State, value: Value) -> Values:
    """By `__iter__`, a generator or not, else by `__getitem__`."""
    given = invoke(state, value, "__iter__")
    if given is not None:
        returned, found = given
        for iterator in returned:
            found |= following(state, iterator)
    else:
        found = (invoke(state, value, "__getitem__", NUMBER) or (NOTHING, NOTHING))[0]
    over = loaders_of(state, found)
    others = _of_others(state, value, over)
    state.store(value.origin, OVER, frozenset(loader for loader in over if loader.origin not in others))
    return frozenset(each for each in found if each.role not in FROM_LOADER or each.origin not in others)


def _of_others(state: State, value: Value, over: Values) -> set[ast.AST | None]:
    """Those of some loaders that other objects of a class hold, and not this one: all run by the same methods."""
    if value.origin is None or not over:
        return set()
    mine = state.agenda.remembered((value.origin, _LOADERS), partial(_held, state, [value]))
    if not mine or not over - mine or not isinstance(value.unit, Class):
        return set()
    theirs = state.agenda.remembered((id(value.unit), _LOADERS), partial(_held_by_class, state, value.unit))
    return {loader.origin for loader in (over & theirs) - mine}


def _held_by_class(state: State, cls: Class) -> Values:
    """The loaders that those objects of a class hold that are run over."""
    methods = (member.unit for name in _RUN_BY for member in state.member(cls, name))
    selves = (state.parameter(each, each.positional[0].arg) for each in methods if isinstance(each, Function))
    return _held(state, NOTHING.union(*selves))


def _held(state: State, values: Iterable[Value]) -> Values:
    """The loaders that objects hold, also by others that they hold: each of these is looked into once."""
    found: set[Value] = set()
    level = {value.origin for value in values}
    seen: set[ast.AST | None] = {None}
    for _ in range(_DEEPEST):
        seen |= level
        held = {each for origin in level if origin is not None for of in state.holding(origin).values() for each in of}
        found |= {Value(Role.LOADER, each.origin) for each in held if each.role is Role.LOADER}
        level = {each.origin for each in held if each.role is not Role.LOADER} - seen
    return frozenset(found)


def following(state: State, iterator: Value) -> Values:
    """What `next(iterator)` gives."""
    given = invoke(state, iterator, "__next__")
    return state.iterated([iterator]) if given is None else given[0]


def iterator(state: State, node: ast.AST, elements: Values, over: Values) -> Values:
    """An iterator that knows what it runs over; an iterator over parameters is parameters."""
    if elements and all(value.role is Role.PARAMETERS for value in elements):
        return elements
    state.store(node, ELEMENT, elements)
    state.store(node, OVER, over)
    return frozenset({Value(Role.ITERATOR, node)}) | of_role(elements, Role.PARAMETERS)


def through(state: State, arguments: Arguments, frame: Frame) -> Values:
    """tqdm(x), iter(x), islice(x, n): the elements of the first argument."""
    over = arguments.at(0, "iterable")
    return iterator(state, arguments.node, iterate(state, over), over)


def _enumerate(state: State, arguments: Arguments, frame: Frame) -> Values:
    node, over = arguments.node, arguments.at(0, "iterable")
    return _tuples(state, node, [NUMBER, iterate(state, over)], over)


def _zip(state: State, arguments: Arguments, frame: Frame) -> Values:
    parts = [iterate(state, values) for values in arguments.positional]
    return _tuples(state, arguments.node, parts, arguments.all(), iterate(state, arguments.rest))


def _tuples(state: State, node: ast.Call, parts: list[Values], over: Values, rest: Values = NOTHING) -> Values:
    """An iterator over tuples; these are kept at the function of the call."""
    for position, values in enumerate(parts):
        state.store(node.func, str(position), values)
    state.store(node.func, ELEMENT, rest)
    state.store(node, ELEMENT, frozenset({Value(Role.CONTAINER, node.func)}))
    state.store(node, OVER, over)
    return frozenset({Value(Role.ITERATOR, node)})


def _chain(state: State, arguments: Arguments, frame: Frame) -> Values:
    parts = [iterate(state, values) for values in (*arguments.positional, arguments.rest)]
    return iterator(state, arguments.node, NOTHING.union(*parts), arguments.all())


def _chain_all(state: State, arguments: Arguments, frame: Frame) -> Values:
    inner = iterate(state, arguments.at(0, "iterable"))
    return iterator(state, arguments.node, iterate(state, inner), arguments.all() | inner)


def _repeat(state: State, arguments: Arguments, frame: Frame) -> Values:
    return iterator(state, arguments.node, arguments.at(0, "object"), NOTHING)


def _count(state: State, arguments: Arguments, frame: Frame) -> Values:
    return iterator(state, arguments.node, NUMBER, NOTHING)


def _tee(state: State, arguments: Arguments, frame: Frame) -> Values:
    copies = through(state, arguments, frame)
    state.store(arguments.node.func, ELEMENT, copies)
    return frozenset({Value(Role.CONTAINER, arguments.node.func)})


def _next(state: State, arguments: Arguments, frame: Frame) -> Values:
    found = NOTHING.union(*(following(state, value) for value in arguments.at(0, "")))
    return found | arguments.at(1, "default")


def _sum(state: State, arguments: Arguments, frame: Frame) -> Values:
    """Tensors that are added up keep their rows; the rows of one tensor that are added up are gone."""
    start = (v._replace(role=Role.SAMPLES) if v.role in ROWS else v for v in arguments.at(1, "start"))
    found: set[Value] = {value for value in start if value.role not in (Role.TEXT, Role.UNKNOWN)}
    for value in arguments.at(0, "iterable"):
        if value.role is Role.STATISTIC:
            found.add(value)
        for element in iterate(state, frozenset({value})):
            if element.role in (Role.BATCH, Role.SAMPLES):
                is_folded = value.role in (Role.BATCH, Role.SAMPLES)
                found.add(Value(Role.STATISTIC if is_folded else Role.SAMPLES, element.origin))
            elif element.role not in (Role.TEXT, Role.UNKNOWN):
                found.add(element)
    return frozenset(found)


SPECIAL: dict[str, Callable[[State, Arguments, Frame], Values]] = {
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.next": _next,
    "builtins.sum": _sum,
    "builtins.iter": through,
    "builtins.reversed": through,
    "itertools.islice": through,
    "itertools.cycle": through,
    "itertools.takewhile": lambda state, arguments, frame: through(state, arguments.after(1), frame),
    "itertools.dropwhile": lambda state, arguments, frame: through(state, arguments.after(1), frame),
    "itertools.zip_longest": _zip,
    "itertools.product": _zip,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _chain_all,
    "itertools.repeat": _repeat,
    "itertools.count": _count,
    "itertools.tee": _tee,
}
