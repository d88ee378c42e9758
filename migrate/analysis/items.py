"""What stands under an index or key of an object: `x[k]`."""

from __future__ import annotations

import ast

from migrate.analysis import containers, imports, members, rows, settings
from migrate.analysis.entry import invoke
from migrate.analysis.roles import NOTHING, ROWS, Role, Value, Values, only, texts
from migrate.analysis.state import ELEMENT, Frame, State
from migrate.analysis.units import Module
from migrate.analysis.unpacking import everything

#: A part of one of these is one of these.
_ALIKE = frozenset({Role.STATISTIC, Role.TENSOR, Role.PARAMETERS})


def item(state: State, value: Value, node: ast.Subscript, keys: Values, frame: Frame) -> Values:
    """The item of one value."""
    if value.role in ROWS:
        # A key picks a part of the batch; an index or a slice of it keeps rows only if it keeps them all.
        is_key = isinstance(node.slice, ast.Constant) or only(keys, Role.TEXT)
        return frozenset({value if is_key else Value(Role.SAMPLES, value.origin)})
    if value.role in _ALIKE:
        return frozenset({value})
    if value.role is Role.KNOWN:
        return rows.item(state, value.name, keys)
    if isinstance(value.unit, Module):  # globals()["Net"], vars(module)[name]
        names = texts(keys)
        exact = NOTHING.union(*(members.attribute(state, value, name) for name in names))
        return exact if names else imports.anything(state, value.unit, frame)
    if value.role is Role.METHOD and value.unit is None:  # x.shape[0]
        if value.receiver is not None and value.receiver.role in ROWS:
            return frozenset({Value(Role.STATISTIC, value.origin)})
        return settings.said(value, settings.name_of(node.slice))
    return _held(state, value, node, keys, frame)


def _held(state: State, value: Value, node: ast.Subscript, keys: Values, frame: Frame) -> Values:
    """By `__getitem__` of a class of the project, else from what the object holds."""
    if (given := invoke(state, value, "__getitem__", keys)) is not None:
        return given[0]
    if value.role is Role.STATE:  # its origin is the model
        return NOTHING
    if value.role is Role.CONTAINER and isinstance(node.slice, ast.Slice):
        state.store(node, ELEMENT, everything(state, value))
        return frozenset({Value(Role.CONTAINER, node)})
    found = containers.under(state, value, node.slice, frame.keys)
    if value.role is Role.MODEL and isinstance(node.slice, ast.Slice) and not found:
        return frozenset({Value(Role.PARAMETERS, value.origin)})  # some layers of a ModuleList, as of model.children()
    if value.role is Role.CHECKPOINT and not found:
        return frozenset({value})
    return settings.under(value, settings.name_of(node.slice), found)
