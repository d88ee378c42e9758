"""What a row of the tables makes of a call: one small function a shape. None: the row says nothing about this call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from migrate.analysis import settings
from migrate.analysis.handing import index
from migrate.analysis.iteration import iterate, iterator
from migrate.analysis.known import distributed
from migrate.analysis.known.table import Gives, Makes, Passes, Reads, Row
from migrate.analysis.known.tensors import DEVICE_TEXT
from migrate.analysis.roles import NOTHING, Role, Value, Values, texts
from migrate.analysis.state import ANY, OVER, State

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from migrate.analysis.arguments import Arguments
    from migrate.analysis.known.table import Argument

    Shape: TypeAlias = Callable[[State, Any, str, Arguments], "Values | None"]


#: Who passes one of these chooses what a data set is asked for.
_SAMPLERS = frozenset({"sampler", "batch_sampler"})


def _makes(state: State, row: Makes, name: str, arguments: Arguments) -> Values:
    node = arguments.site
    if row.role is Role.AVAILABLE:
        return frozenset({Value(row.role, name=name)})
    if row.over is not None:
        state.store(node, OVER, arguments.at(*row.over))
    if row.role is Role.DATASET:
        state.store(node, OVER, arguments.all())
    if row.role is Role.LOADER:
        state.store(node, "<sampler>", arguments.named.get("sampler", NOTHING))
        if not arguments.named.keys() & _SAMPLERS and row.over is not None:
            index(state, arguments.at(*row.over))
    return frozenset({Value(row.role, node, name)})


def _gives(state: State, row: Gives, name: str, arguments: Arguments) -> Values:
    """A tuple, kept at the function's name; what is made with it is at the call."""
    node = arguments.node
    elements = [e for e in row.elements if not (row.is_short and isinstance(e, tuple)) or arguments.has(*e)]
    values = [_element(row, element, name, arguments) for element in elements]
    if row.over is not None:
        state.store(arguments.site, OVER, arguments.at(*row.over))
    if row.is_short and len(values) == 1:
        return values[0]
    for position, given in enumerate(values):
        state.store(node.func, str(position), given)
    return frozenset({Value(Role.CONTAINER, node.func)})


def _element(row: Gives, element: Role | Argument | None, name: str, arguments: Arguments) -> Values:
    if element is None:
        return NOTHING
    if not isinstance(element, Role):
        return arguments.at(*element)
    # Of several objects of one role the call alone cannot say which is which.
    origin: ast.AST | None = arguments.site if row.elements.count(element) == 1 else None
    return frozenset({Value(element, origin, name)})


def _passes(state: State, row: Passes, name: str, arguments: Arguments) -> Values | None:
    if not arguments.has(*row.argument):
        return None
    values = arguments.at(*row.argument)
    if row.role is Role.ITERATOR:
        return iterator(state, arguments.node, iterate(state, values), values)
    if row.role is Role.PARAMETERS:
        return frozenset(Value(row.role, value.origin) for value in values if value.role is Role.MODEL) or None
    return values if row.keeps is None else frozenset(value for value in values if value.role in row.keeps) or None


def _reads(state: State, row: Reads, name: str, arguments: Arguments) -> Values | None:
    return _environment(arguments.at(0, "key")) or _told(arguments.node, arguments.at(1, "default")) or None


def _told(node: ast.AST, default: Values) -> Values:
    """`os.environ.get("DEVICE", "cuda")`: what the user names, or the device that is taken where nobody names one."""
    names = all(value.role is Role.TEXT and value.name.partition(":")[0] in DEVICE_TEXT for value in default)
    return default | settings.said(Value(Role.HOLDER, node), "device") if default and names else NOTHING


BY_SHAPE: dict[type[Row | None], Shape] = {Makes: _makes, Gives: _gives, Passes: _passes, Reads: _reads}


def item(state: State, name: str, keys: Values) -> Values:
    """A subscript of a library name: `models.__dict__[arch]`, `os.environ["RANK"]`."""
    if name.endswith(".__dict__"):
        return frozenset({Value(Role.KNOWN, name=name[: -len("__dict__")] + ANY)})
    return _environment(keys) if isinstance(state.known.row(name), Reads) else NOTHING


def _environment(keys: Values) -> Values:
    """What the environment variables of these names are."""
    found = {distributed.ENVIRONMENT.get(name) for name in texts(keys)}
    return frozenset(Value(role) for role in found if role is not None)
