"""What calling a library function gives: by its row in the tables, else by what goes in."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis import members, rows
from migrate.analysis.arguments import Arguments, folds, handed
from migrate.analysis.known.table import Computes, Passes
from migrate.analysis.roles import FROM_LOADER, NOTHING, ROWS, Role, Value, Values
from migrate.analysis.state import ELEMENT, OVER, Frame, State
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Callable


def library(state: State, name: str, arguments: Arguments, frame: Frame) -> Values:
    """What calling a library function gives."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(state, arguments, frame)
    row = state.known.row(name)
    if isinstance(row, Passes) and row.role is Role.ITERATOR and arguments.has(*row.argument):
        return iterator(state, arguments.node, arguments.at(*row.argument))
    handler = rows.BY_SHAPE.get(type(row))
    given = handler(state, row, name, arguments) if handler is not None and row is not None else None
    return _computed(state, name, arguments) if given is None else given


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
    """What follows from what goes in: tensors in, tensors out; rows are kept unless it is known to fold them."""
    is_tensor = isinstance(state.known.row(name), Computes)
    last = name.rsplit(".", 1)[-1]
    inputs = arguments.all()
    from_loader = {value for value in _inside(state, inputs) if value.role in FROM_LOADER}
    parameters = handed(inputs)
    if from_loader:
        keeps = is_tensor and not folds(last, arguments)
        return (
            frozenset(
                Value(Role.SAMPLES if keeps and value.role in ROWS else Role.STATISTIC, value.origin)
                for value in from_loader
            )
            | parameters
        )
    if is_tensor:
        return frozenset({Value(Role.TENSOR, arguments.node, name)}) | parameters
    return frozenset({Value(Role.UNKNOWN, arguments.node, name)}) | parameters


def _inside(state: State, values: Values) -> Values:
    """The values and, one level deep, what they contain: torch.cat([a, b])."""
    found = set(values)
    for value in values:
        if value.role is Role.CONTAINER:
            found |= state.iterated([value])
    return frozenset(found)
