"""What each object was made with: `self.model = model` gives every trainer its own model, not that of its neighbours.

Parameters are joined over all calls. What a constructor is passed for one object is kept at that object as well, and
what `__init__` sets is evaluated for each object with its own arguments and methods: `self.model = self.build()`
in the `__init__` of a base gives each class what its own `build` makes.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.roles import NOTHING, Role, Value, Values
from migrate.analysis.syntax import reads
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeGuard

    from migrate.analysis.arguments import Arguments
    from migrate.analysis.state import Frame, State

_MOST = 24  # objects of a class and those derived from it for which that is done


def _key(unit: Function, parameter: str) -> str:
    return f"<{unit.module.path}:{unit.node.lineno} {parameter}>"


def is_constructor(unit: object) -> TypeGuard[Function]:
    """Whether a unit is an `__init__`, or what sets up an object whose fields are there."""
    return isinstance(unit, Function) and unit.sets_up


def keep_arguments(
    state: State, unit: Function, made: Value | None, positional: Sequence[ast.arg], arguments: Arguments, frame: Frame
) -> None:
    """Remember what `__init__` is passed for one object; `positional` are its parameters without `self`."""
    if made is None or made.origin is None or not is_constructor(unit):
        return
    given: dict[str, tuple[ast.AST, Values]] = {
        k.arg: (k.value, arguments.named.get(k.arg, NOTHING)) for k in arguments.node.keywords if k.arg is not None
    }
    is_plain = len(arguments.positional) == len(arguments.node.args)  # else some were bound before
    for parameter, argument, values in zip(
        positional, arguments.node.args if is_plain else (), arguments.positional, strict=False
    ):
        if isinstance(argument, ast.Starred):
            break
        given[parameter.arg] = (argument, values)
    if is_plain and _says_all(arguments.node):
        given |= {name: (unit.node, values) for name, values in unit.defaults.items() if name not in given}
    passed = _own(state, made, frame) if given and is_constructor(frame.unit) else {}
    for name, (node, values) in given.items():
        if values:
            own = passed.get(node.id, values) if isinstance(node, ast.Name) else values
            state.store(made.origin, _key(unit, name), own)


def _says_all(call: ast.Call) -> bool:
    """Whether a call names all that it passes, so that what is left has its default."""
    return all(keyword.arg for keyword in call.keywords) and not any(isinstance(a, ast.Starred) for a in call.args)


def _own(state: State, made: Value, frame: Frame) -> dict[str, Values]:
    """What the parameters of the running `__init__` are for one object, as far as they were passed for it."""
    unit = frame.unit
    if not is_constructor(unit) or not unit.positional or made.origin is None:
        return {}
    if not unit.defaults and len(unit.parameters.get(unit.positional[0].arg, NOTHING)) < 2:
        return {}  # one object has been made, so all that is passed is passed for it
    kept = {name: state.load(made.origin, _key(unit, name)) for name in unit.parameter_names}
    return {name: values for name, values in kept.items() if values and values <= frame.names.get(name, values)}


def each_own(
    state: State,
    owners: Values,
    node: ast.expr | None,
    values: Values,
    frame: Frame,
    evaluate: Callable[[State, ast.expr, Frame], Values],
) -> list[tuple[Value, Values]]:
    """The owners of an attribute, each with what the expression gives for it; `values` are those for all of them."""
    unit, alike = frame.unit, [(owner, values) for owner in owners]
    if node is None or not owners or len(owners) > _MOST or not is_constructor(unit) or not unit.positional:
        return alike
    if len(owners) == 1 and not unit.defaults:  # of one, all that was passed is its own
        return alike
    if node not in state.reads:
        state.reads[node] = frozenset(reads(node))
    itself = unit.positional[0].arg
    read = state.reads[node].intersection(unit.parameter_names)
    if not read:
        return alike
    found = []
    differ = itself in read and len({owner.unit for owner in owners}) > 1
    for owner in owners:
        passed = _own(state, owner, frame).items() if owner.role is not Role.CLASS else ()
        own = {name: v for name, v in passed if name in read and v != frame.names.get(name)}
        if differ and frame.names.get(itself) == owners:
            own[itself] = frozenset({owner})
        if own:
            found.append((owner, evaluate(state, node, replace(frame, names={**frame.names, **own}))))
        else:
            found.append((owner, values))
    return found
