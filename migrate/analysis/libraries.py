"""What calling a library function gives: by its row in the tables, else by what goes in."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis import known, members
from migrate.analysis.arguments import Arguments, folds, handed
from migrate.analysis.roles import FROM_LOADER, NOTHING, ROWS, Role, Value, Values
from migrate.analysis.state import ELEMENT, OVER, Frame, State
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Callable


def library(state: State, name: str, arguments: Arguments, frame: Frame) -> Values:
    node = arguments.node
    special = _SPECIAL.get(name)
    if special is not None:
        return special(state, arguments, frame)
    passing = known.passes(name)
    if passing is not None and (arguments.positional or arguments.named):
        values = arguments.positional[0] if arguments.positional else next(iter(arguments.named.values()))
        if passing.role is Role.ITERATOR:
            return iterator(state, node, values)
        return values
    row = known.made_by(name)
    if row is not None and row.role is not Role.UNKNOWN:
        return _make(state, row.role, name, arguments, frame, row.over)
    return _computed(state, name, arguments)


def _make(
    state: State, role: Role, name: str, arguments: Arguments, frame: Frame, over: tuple[int, str] | None
) -> Values:
    node = arguments.node
    if role is Role.AVAILABLE:
        return frozenset({Value(role, name=name)})
    if role is Role.DATASET:
        state.store(node, OVER, arguments.all())
    made = Value(role, node, name)
    if over is not None:
        state.store(node, OVER, arguments.at(*over))
    if role is Role.LOADER:
        state.store(node, "<sampler>", arguments.named.get("sampler", NOTHING))
    return frozenset({made})


def iterator(state: State, node: ast.Call, values: Values) -> Values:
    """enumerate(x), tqdm(x), iter(x): an iterator that knows what it runs over."""
    elements = state.iterated(values)
    if isinstance(node.func, ast.Name) and node.func.id == "enumerate":
        state.store(node.func, "0", frozenset({Value(Role.NUMBER)}))
        state.store(node.func, "1", elements)
        elements = frozenset({Value(Role.CONTAINER, node.func)})
    state.store(node, ELEMENT, elements)
    state.store(node, OVER, values)
    return frozenset({Value(Role.ITERATOR, node)})


def _zip(state: State, arguments: Arguments, frame: Frame) -> Values:
    node = arguments.node
    for position, values in enumerate(arguments.positional):
        state.store(node.func, str(position), state.iterated(values))
        state.store(node, OVER, values)
    state.store(node, ELEMENT, frozenset({Value(Role.CONTAINER, node.func)}))
    return frozenset({Value(Role.ITERATOR, node)})


def _next(state: State, arguments: Arguments, frame: Frame) -> Values:
    return state.iterated(arguments.at(0, ""))


def _super(state: State, arguments: Arguments, frame: Frame) -> Values:
    """The receiver of the running method, seen as its base class."""
    unit = frame.unit
    while isinstance(unit, Function) and unit.owner is None and unit.parent is not None:
        unit = unit.parent
    if not isinstance(unit, Function) or unit.owner is None or not unit.positional:
        return NOTHING
    selves = state.parameter(unit, unit.positional[0].arg)
    bases = [base.unit for base in unit.owner.bases if isinstance(base.unit, Class)]
    return frozenset(value._replace(unit=base) for value in selves for base in bases)


def _map(state: State, arguments: Arguments, frame: Frame) -> Values:
    elements = state.iterated(arguments.at(1, "iterable"))
    state.store(arguments.node, ELEMENT, elements)
    return frozenset({Value(Role.ITERATOR, arguments.node)}) | frozenset(
        value for value in elements if value.role in ROWS or value.role is Role.PARAMETERS
    )


def _partial(state: State, arguments: Arguments, frame: Frame) -> Values:
    return arguments.at(0, "func")


def _getattr(state: State, arguments: Arguments, frame: Frame) -> Values:
    """getattr(optim, name): some name of the module; its tables say what all of them have in common."""
    found: set[Value] = set()
    names = [value.name for value in arguments.at(1, "name") if value.role is Role.TEXT]
    for value in arguments.at(0, "object"):
        if value.role is Role.KNOWN:
            found = found.union(*(members.known_attribute(value, name) for name in names or ["<any>"]))
        else:
            for name in names:
                found |= members.attribute(state, value, name)
    return frozenset(found)


_SPECIAL: dict[str, Callable[[State, Arguments, Frame], Values]] = {
    "builtins.zip": _zip,
    "builtins.next": _next,
    "builtins.super": _super,
    "builtins.map": _map,
    "builtins.filter": _map,
    "builtins.getattr": _getattr,
    "functools.partial": _partial,
}


def _computed(state: State, name: str, arguments: Arguments) -> Values:
    """A library function without a row: tensors in, tensors out; rows are kept unless it is known to fold them."""
    last = name.rsplit(".", 1)[-1]
    inputs = arguments.all()
    from_loader = {value for value in _inside(state, inputs) if value.role in FROM_LOADER}
    parameters = handed(inputs)
    if from_loader:
        keeps = name.startswith("torch.") and not folds(last, arguments)
        return (
            frozenset(
                Value(Role.SAMPLES if keeps and value.role in ROWS else Role.STATISTIC, value.origin)
                for value in from_loader
            )
            | parameters
        )
    if name.startswith("torch."):
        return frozenset({Value(Role.TENSOR, arguments.node, name)}) | parameters
    return frozenset({Value(Role.UNKNOWN, arguments.node, name)}) | parameters


def _inside(state: State, values: Values) -> Values:
    """The values and, one level deep, what they contain: torch.cat([a, b])."""
    found = set(values)
    for value in values:
        if value.role is Role.CONTAINER:
            found |= state.iterated([value])
    return frozenset(found)
