"""Functions that make what their arguments say: `def make(module, name, *args): return getattr(module, name)(*args)`.

Run once for all its callers such a function gives everything to each of them. It is run once for each call instead, as
a copy with parameters and results of its own, and what it makes counts as made by that call.
"""

from __future__ import annotations

import ast

from migrate.analysis.known.table import Makes
from migrate.analysis.roles import Role, Value, Values
from migrate.analysis.state import MAPPING, State
from migrate.analysis.syntax import FUNCTIONS, own_nodes
from migrate.analysis.units import Function, join

_LONGEST = 40  # lines; a factory is short
#: What is run once for all callers: loops, and functions that outlive the call.
_NOT_HERE = (ast.For, ast.AsyncFor, ast.While, ast.Yield, ast.YieldFrom, ast.ClassDef, *FUNCTIONS)


def copy_for(
    state: State, unit: Function, site: ast.Call, outer: ast.Call | None, given: dict[str, Values]
) -> Function:
    """The copy of a factory for one call (in a copy for the call `outer`); the function itself if it is none."""
    if not any(value.role in _SOURCES for values in given.values() for value in values):
        return unit
    if unit.node not in state.makers:
        state.makers[unit.node] = _maker(unit)
    maker = state.makers[unit.node]
    if maker is None or not any(_makes(state, value) for value in given.get(maker[1], ())):
        return unit
    key = (unit.node, site, outer)
    if key not in state.copies:
        copy = Function(unit.node, unit.module, unit.owner, unit.parent)
        copy.of, copy.makes, copy.site = unit, maker[0], outer or site
        copy.rest, copy.others = (arg and ast.copy_location(ast.arg(arg.arg), arg) for arg in (unit.rest, unit.others))
        hold_rest(state, copy)
        state.copies[key] = copy
    return state.copies[key]


def merge(state: State) -> None:
    """Say of each factory what its copies have learnt of its parameters."""
    for copy in state.copies.values():
        for name, values in copy.parameters.items():
            assert copy.of is not None
            join(copy.of.parameters, name, values)


def hold_rest(state: State, unit: Function) -> None:
    """Give `*args` and `**kwargs` a tuple and a dictionary."""
    if unit.rest is not None:
        state.join_parameter(unit, unit.rest.arg, frozenset({Value(Role.CONTAINER, unit.rest)}))
    if unit.others is not None:
        state.join_parameter(unit, unit.others.arg, frozenset({Value(Role.CONTAINER, unit.others, MAPPING)}))


_SOURCES = frozenset({Role.CLASS, Role.MODULE, Role.KNOWN})


def _makes(state: State, value: Value) -> bool:
    """Whether a value is a class, or a place where classes are found."""
    if value.role is not Role.KNOWN:
        return value.role in _SOURCES
    rows = (state.known.row(value.name), state.known.row(f"{value.name}.Any"))
    return any(isinstance(row, Makes) for row in rows)


def _maker(unit: Function) -> tuple[ast.Call, str] | None:
    """The only call of a function that calls a parameter, or what it gets from one by name; and that parameter."""
    node = unit.node
    if isinstance(node, ast.Lambda) or (node.end_lineno or node.lineno) - node.lineno > _LONGEST:
        return None
    names = set(unit.parameter_names)
    if unit.owner is not None and unit.positional:  # a class method makes objects of its own class
        names.discard(unit.positional[0].arg)
    nodes = [inner for statement in node.body for inner in (statement, *own_nodes(statement))]
    if any(isinstance(inner, _NOT_HERE) for inner in nodes):
        return None
    aliases = {
        target.id: _source(inner.value, names)
        for inner in nodes
        if isinstance(inner, ast.Assign) and _source(inner.value, names)
        for target in inner.targets
        if isinstance(target, ast.Name)
    }
    found = []
    for inner in nodes:
        if isinstance(inner, ast.Call):
            func = inner.func
            name = func.id if isinstance(func, ast.Name) else ""
            source = aliases.get(name) or (name if name in names else _source(func, names))
            if source:
                found.append((inner, source))
    return found[0] if len(found) == 1 else None


def _source(node: ast.expr, names: set[str]) -> str | None:
    """The parameter that `getattr(parameter, name)` or `parameter.__dict__[name]` takes from."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and node.args:
        node = node.args[0]
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "__dict__":
        node = node.value.value
    else:
        return None
    return node.id if isinstance(node, ast.Name) and node.id in names else None
