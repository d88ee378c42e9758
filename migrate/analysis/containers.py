"""Lists, tuples, dictionaries and objects with attributes: what makes them, and their methods."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis import settings
from migrate.analysis.iteration import iterate, iterator
from migrate.analysis.keys import pairs_in, written_keys
from migrate.analysis.known.settings import HOLDERS
from migrate.analysis.own_parameters import listed
from migrate.analysis.roles import NOTHING, NUMBER, ROWS, Role, Value, Values, of_role
from migrate.analysis.state import ELEMENT, MAPPING, MIXED, OVER, SHORTENED, Frame, State
from migrate.analysis.unpacking import at, everything

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from migrate.analysis.arguments import Arguments


# --- what makes them --------------------------------------------------------------------------------------------------


def _ordered(state: State, arguments: Arguments, frame: Frame) -> Values:
    """list(x), tuple(x): elements keep their positions."""
    for value in arguments.at(0, "iterable"):
        if value.role is Role.CONTAINER and value.name != MAPPING and value.origin is not None:
            state.copy(value.origin, arguments.node)
    return _listed(state, arguments, frame)


def _listed(state: State, arguments: Arguments, frame: Frame) -> Values:
    """set(x), sorted(x), deque(x): a new container of the elements; of rows it is these."""
    node, given = arguments.node, arguments.at(0, "iterable")
    alike = of_role(given, *ROWS)
    if alike and alike == given:
        return alike
    elements = iterate(state, given)
    if not any(key.isdigit() for key in state.held(node)):
        state.store(node, ELEMENT, elements)
    state.store(node, OVER, of_role(given, Role.LOADER, Role.ITERATOR))
    return alike | of_role(elements, Role.PARAMETERS) | {Value(Role.CONTAINER, node)}


def _dict(state: State, arguments: Arguments, frame: Frame) -> Values:
    """dict(a=x), dict(mapping), dict(pairs)."""
    given = arguments.at(0, "")
    pairs = pairs_in(arguments.node.args[0]) if len(arguments.node.args) == 1 else []
    for key, item in pairs:
        state.store(arguments.node, key, state.values.get(item, NOTHING))
    fill(state, arguments.node, NOTHING if pairs else given, arguments)
    if given and given == of_role(given, Role.HOLDER):  # what a user says is in the copy as well
        return frozenset({Value(Role.HOLDER, arguments.node)})
    alike = of_role(given, Role.BATCH)
    made = of_role(given, Role.PARAMETERS) | {Value(Role.CONTAINER, arguments.node, MAPPING)}
    return alike if alike and alike == given else alike | made


def _counter(state: State, arguments: Arguments, frame: Frame) -> Values:
    """Counter(words): numbers under keys that are not known."""
    return frozenset({Value(Role.CONTAINER, arguments.node, MAPPING)})


def fill(state: State, node: ast.AST, given: Values, arguments: Arguments | None = None) -> None:
    """Put what a mapping or pairs and the keywords say into an object."""
    for value in given:
        if value.origin is not None and (value.name == MAPPING or value.role is Role.HOLDER):
            state.copy(value.origin, node)
        elif value.role is Role.PARAMETERS:
            state.store(node, ELEMENT, frozenset({value}))
        elif value.role in (Role.CONTAINER, Role.ITERATOR):
            for pair in iterate(state, frozenset({value})):
                if pair.role is Role.CONTAINER and pair.origin is not None:
                    state.store(node, ELEMENT, state.load(pair.origin, "1") or state.load(pair.origin, ELEMENT))
    if arguments is not None:
        for key, values in arguments.named.items():
            state.store(node, key, values)
        state.store(node, ELEMENT, arguments.others)


def _holder(state: State, arguments: Arguments, frame: Frame) -> Values:
    """SimpleNamespace(a=x), EasyDict(mapping)."""
    fill(state, arguments.node, arguments.at(0, ""), arguments)
    return frozenset({Value(Role.HOLDER, arguments.node)})


def _shuffle(state: State, arguments: Arguments, frame: Frame) -> Values:
    for value in arguments.at(0, "x"):
        if is_sequence(value):
            mix(state, value)
    return NOTHING


SPECIAL: dict[str, Callable[[State, Arguments, Frame], Values]] = {
    "random.shuffle": _shuffle,
    "numpy.random.shuffle": _shuffle,
    "builtins.list": _ordered,
    "builtins.tuple": _ordered,
    "builtins.set": _listed,
    "builtins.frozenset": _listed,
    "builtins.sorted": _listed,
    "collections.deque": _listed,
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "collections.Counter": _counter,
    **dict.fromkeys(HOLDERS, _holder),
}


# --- their methods ----------------------------------------------------------------------------------------------------


def of_container(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    """What a method of a list, tuple, set or dictionary gives."""
    assert value.origin is not None
    handler = _METHODS.get(name)
    return handler(state, value, arguments) if handler is not None else NOTHING


def _append(state: State, value: Value, arguments: Arguments) -> Values:
    values = arguments.positional[-1] if arguments.positional else arguments.rest
    given = arguments.node.args
    state.store(value.origin, ELEMENT, listed(state, given[-1], values) if given else values)
    return NOTHING


def _insert(state: State, value: Value, arguments: Arguments) -> Values:
    _append(state, value, arguments)
    return mix(state, value)


def mix(state: State, value: Value, *_: object) -> Values:
    """What stands where is not known any more: any element may be anywhere."""
    state.store(value.origin, MIXED, NUMBER)
    return NOTHING


def shorten(state: State, value: Value) -> None:
    """What a dictionary holds is under the same keys, if these are still there; what a list holds may have moved."""
    if value.name == MAPPING:
        state.store(value.origin, SHORTENED, NUMBER)
    else:
        mix(state, value)


def _extend(state: State, value: Value, arguments: Arguments) -> Values:
    state.store(value.origin, ELEMENT, iterate(state, arguments.all()))
    return NOTHING


def _update(state: State, value: Value, arguments: Arguments) -> Values:
    assert value.origin is not None
    fill(state, value.origin, arguments.at(0, ""), arguments)
    return NOTHING


def _copy(state: State, value: Value, arguments: Arguments) -> Values:
    """The same object: what is put into the copy may be in the original, too."""
    return frozenset({value})


def _values(state: State, value: Value, arguments: Arguments) -> Values:
    """In the order of the keys, where these are written out: `train, val = loaders.values()`."""
    assert value.origin is not None
    node, held = arguments.node, everything(state, value)
    for position, key in enumerate(keys := written_keys(state, value.origin)):
        state.store(node, str(position), under(state, value, ast.Constant(key)))
    if not keys:  # what was taken to stand at a position may be any of them
        for known in [key for key in state.held(node) if key.isdigit()]:
            state.store(node, known, held)
    return iterator(state, node, NOTHING if keys else held, NOTHING)


def _items(state: State, value: Value, arguments: Arguments) -> Values:
    state.store(arguments.node.func, "1", everything(state, value))
    state.store(arguments.node, ELEMENT, frozenset({Value(Role.CONTAINER, arguments.node.func)}))
    return frozenset({Value(Role.ITERATOR, arguments.node)})


def _get(state: State, value: Value, arguments: Arguments) -> Values:
    key = arguments.node.args[0] if arguments.node.args else None
    return settings.under(value, settings.name_of(key), under(state, value, key)) | arguments.at(1, "default")


def _set_default(state: State, value: Value, arguments: Arguments) -> Values:
    key = key_of(arguments.node.args[0]) if arguments.node.args else None
    state.store(value.origin, key or ELEMENT, arguments.at(1, "default"))
    return _get(state, value, arguments)


def _pop(state: State, value: Value, arguments: Arguments) -> Values:
    if value.name == MAPPING:
        shorten(state, value)
        return _get(state, value, arguments)
    mix(state, value)
    return everything(state, value)


_METHODS: dict[str, Callable[[State, Value, Arguments], Values]] = {
    "append": _append,
    "appendleft": _insert,
    "add": _append,
    "insert": _insert,
    "extend": _extend,
    "update": _update,
    "copy": _copy,
    "values": _values,
    "items": _items,
    "get": _get,
    "setdefault": _set_default,
    "pop": _pop,
    "popleft": _pop,
    "popitem": _pop,
    "remove": mix,
    "sort": mix,
    "clear": mix,
    "reverse": mix,
}


# --- operators -------------------------------------------------------------------------------------------------------


def is_sequence(value: Value) -> bool:
    """Whether it is a list or tuple (or a set), and no dictionary."""
    return value.role is Role.CONTAINER and value.name != MAPPING


def join(state: State, made: ast.AST, left: Values, right: Values, *, again: bool) -> None:
    """`a + b`, or (`again`) `a * n`: a new list or tuple, in which only what `a` has at a position is where it was."""
    first = next(iter(left)) if len(left) == 1 else None
    if first is not None and is_sequence(first) and first.origin is not None:
        for key, held in state.held(first.origin).items():
            if key == ELEMENT or key.isdigit():
                state.store(made, key, held)
    if first is None or again:
        state.store(made, ELEMENT, iterate(state, left))
    state.store(made, ELEMENT, iterate(state, right))


def grow(state: State, values: Values, further: Values) -> bool:
    """`a += b`: what is in a list or dictionary by any of its names is more from then on; whether there is one."""
    grown = [value for value in values if value.role is Role.CONTAINER and value.origin is not None]
    for value in grown:
        if is_sequence(value):
            state.store(value.origin, ELEMENT, iterate(state, further))
        else:
            fill(state, value.origin, further)  # type: ignore[arg-type]
    return bool(grown)


# --- what they hold ---------------------------------------------------------------------------------------------------


_NO_NAMES: Mapping[str, str] = {}


def key_of(node: ast.expr | None, names: Mapping[str, str] = _NO_NAMES) -> str | None:
    """The key that a constant stands for, or the name of one."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    return str(node.value) if isinstance(node, ast.Constant) else None


def under(state: State, value: Value, index: ast.expr | None, names: Mapping[str, str] = _NO_NAMES) -> Values:
    """What an object holds under an index or key; under one that is not known, any of what it holds.

    `names` are those of keys.
    """
    if value.origin is None:
        return NOTHING
    key = key_of(index, names)
    if key is None:
        return everything(state, value)
    if key.isdigit() and value.name != MAPPING:
        return at(state, value.origin, key)
    # A key of a dictionary may have been set under another name.
    return state.load(value.origin, key) | state.load(value.origin, ELEMENT)


def put(state: State, owner: Value, index: ast.expr, values: Values, names: Mapping[str, str] = _NO_NAMES) -> None:
    """Put values under an index or key; under one that is not known, it may be any of those there are."""
    if owner.origin is None:
        return
    key = key_of(index, names)
    if isinstance(index, ast.Slice) and is_sequence(owner):  # all behind it may move
        state.store(owner.origin, ELEMENT, iterate(state, values))
        mix(state, owner)
        return
    if key is None:
        for other in state.held(owner.origin):
            if other[:1] != "<" and owner.role is Role.CONTAINER:
                state.store(owner.origin, other, values)
    state.store(owner.origin, key or ELEMENT, values)
    if not values and owner.name == MAPPING:
        state.unfilled.setdefault(owner.origin, {})[key or ELEMENT] = None
