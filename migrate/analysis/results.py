"""Which of the results of a function belong to one of its calls.

A function is run once for all its callers: its parameters are joined over them, and so are its results. For one call,
what only other calls have passed in is left out again, unless an earlier call may have left it somewhere: in an object,
a class, a default, or under a name around the function.
"""

from __future__ import annotations

import ast
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias

from migrate.analysis.roles import NOTHING, Role, Value, Values, of_role, roles
from migrate.analysis.state import BASES
from migrate.analysis.syntax import reads, walk, writes
from migrate.analysis.units import Class, Function, FunctionNode
from migrate.analysis.unpacking import everything, inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.state import Frame, State
    from migrate.analysis.units import Module


_Origins: TypeAlias = "set[ast.AST]"

_REACH = "<reach>"  # key of the agenda: where that was made which a function, an object or a class can give
_CONTENTS = "<contents>"  # key of the agenda: where that was made which a container holds
_DEEPEST = 2  # functions between the one that is called and one whose defaults or names hold something


def of_this_call(state: State, unit: Function, found: Values, here: Values, *, is_generator: bool = False) -> Values:
    """The results without what only other calls passed in; `here` is all that this one passes.

    A function that is called with training and with test batches gives results of both; one that wraps a model gives
    all the models that were passed. Left out is what came in by other calls, where something stays that came by this.
    """
    found = _without_others_tensors(state, unit, found, here)
    shallow = {value.origin for value in here}
    if all(value.origin in shallow or value.origin is None for value in found):
        return found
    all_calls = state.parameters(unit)
    if is_generator:  # by what it runs over
        own = state.iterated(here)
        found = found - state.iterated(all_calls) | found & own if own else found
    origins = {value.origin for value in found if value.origin is not None}
    others = _without(origins, _origins(state, here))
    is_tensor = Role.TENSOR in roles(here) and Role.TENSOR in roles(found)
    stays = is_tensor or len(others) < len(origins)
    if not others or (not stays and not state.agenda.awaits(unit)):
        return found
    elsewhere = others - _without(others, _origins(state, all_calls))
    elsewhere = _without(elsewhere, _kept(state, unit, here))
    return frozenset(value for value in found if value.origin not in elsewhere) if elsewhere else found


def _without(origins: _Origins, groups: Iterator[_Origins]) -> _Origins:
    """Some places without those of some groups, which may be large: they are looked at while there are places left."""
    for group in groups:
        if not origins:
            break
        origins = origins - group
    return origins


def _kept(state: State, unit: Function, here: Values) -> Iterator[_Origins]:
    """Where that was made which a call can give though another left it: in an object, a class, a default, a name."""
    remembered = state.agenda.remembered
    yield from remembered((id(unit), _REACH), partial(_of_reach, state, unit))
    for value in here:  # what an object keeps may come out of any of its methods
        if value.role is Role.INSTANCE and value.origin is not None:
            yield from remembered((value.origin, _REACH), partial(_of_object, state, value))
        if isinstance(value.unit, Class):
            yield from remembered((id(value.unit), _REACH), partial(_of_class, state, value.unit))


def _of_reach(state: State, unit: Function) -> tuple[_Origins, ...]:
    return tuple(_origins(state, frozenset(_within_reach(state, unit, _DEEPEST))))


def _of_object(state: State, value: Value) -> tuple[_Origins, ...]:
    return tuple(_origins(state, everything(state, value)))


def _of_class(state: State, cls: Class) -> tuple[_Origins, ...]:
    return tuple(_origins(state, _attributes(state, cls)))


def of_unpacked(state: State, target: ast.expr, share: Values, frame: Frame) -> Values:
    """What a name gets of a tuple that a call gives, `model, epoch = load(model)`, without what only others passed in.

    The tuple itself is one object, which the function makes for all of them.
    """
    statement = frame.statement
    if not isinstance(statement, ast.Assign) or target not in statement.targets:
        return share
    entered = state.handed.get((statement.value, frame.unit), {}) if isinstance(statement.value, ast.Call) else {}
    for unit, here in entered.items():
        if len(entered) == 1 and len(unit.original.calls) > 1:
            made = partial(of_this_call, state, unit, share, here)
            return state.agenda.remembered((id(unit), share, here), made)
    return share


def _within_reach(state: State, unit: Function, depth: int) -> Iterator[Value]:
    """What a function can give of what earlier calls have left: its defaults, and what stands under names around it."""
    values = state.defaults(unit)
    for name in _free(unit.node):
        around: Function | Module | None = unit.parent or unit.module
        while around is not None:
            values |= state.look(around, name) or NOTHING
            around = (around.parent or around.module) if isinstance(around, Function) else None
    for value in values:
        yield value
        if isinstance(value.unit, Function) and depth:
            yield from _within_reach(state, value.unit, depth - 1)
        elif isinstance(value.unit, Class):
            yield from _attributes(state, value.unit)


def _attributes(state: State, cls: Class) -> Values:
    """The attributes of a class, which all of its objects share."""
    found: dict[str, Values] = {}
    for each in reversed(cls.mro()):
        found |= state.names_of(each)
    state.agenda.read((id(cls), BASES))
    return NOTHING.union(*found.values())


@lru_cache(maxsize=1024)
def _free(function: FunctionNode) -> frozenset[str]:
    """The names that a function reads and does not give a value itself, or shares with others."""
    nodes = walk(function)
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    shared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    return frozenset((reads(function) - writes(function) - parameters) | shared)


def _without_others_tensors(state: State, unit: Function, found: Values, here: Values) -> Values:
    """`net = cuda(Net())` gives the model back, as `cuda(images)` gives tensors, of which no origin is kept."""
    tensors = {value for value in found if value.role is Role.TENSOR and value.origin is None}
    if not tensors or any(value.role is Role.TENSOR for value in here):
        return found
    if not tensors & state.parameters(unit):
        return found
    mine = found & here
    is_models = all(value.role is Role.MODEL for value in mine) if mine else state.agenda.awaits(unit)
    return found - tensors if is_models else found


def _origins(state: State, values: Values) -> Iterator[_Origins]:
    """Where the values were made, what is in the containers among them, and what the iterators run over."""
    behind = state.loaders(of_role(values, Role.ITERATOR))
    yield {value.origin for value in (*values, *behind) if value.origin is not None}
    for value in values:
        if value.role is Role.CONTAINER and value.origin is not None:
            yield state.agenda.remembered((value.origin, _CONTENTS), partial(_of_container, state, value))


def _of_container(state: State, value: Value) -> _Origins:
    deep = inside(state, (value,))
    behind = state.loaders(of_role(deep, Role.ITERATOR))
    return {value.origin for value in (*deep, *behind) if value.origin is not None}
