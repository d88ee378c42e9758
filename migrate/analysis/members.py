"""What a name or an attribute means."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache
from typing import TYPE_CHECKING

from migrate.analysis.known import transformers
from migrate.analysis.roles import FROM_LOADER, NOTHING, ROWS, Role, Value, Values
from migrate.analysis.state import MAPPING, OVER, Frame, State
from migrate.analysis.units import Class, Function, Module, module_of

if TYPE_CHECKING:
    from migrate.source.project import SourceFile


def lookup(state: State, name: str, frame: Frame) -> Values:
    """What a name means here: local, enclosing function, module, builtin."""
    unit = frame.unit
    if name in frame.names:
        local = frame.names[name]
        return local | (state.look(unit, name) or NOTHING) if name in unit.elsewhere else local
    frame.missed.add(name)
    if name in frame.shared:
        unit = frame.shared[name]
        return state.look(unit, name) or NOTHING
    if name in unit.elsewhere:
        return state.look(unit, name) or NOTHING
    while isinstance(unit, Function):
        unit = unit.parent if unit.parent is not None else unit.module
        if (found := state.look(unit, name)) is not None:
            return found
    return known(f"builtins.{name}") if hasattr(builtins, name) else NOTHING


def attribute(state: State, value: Value, name: str) -> Values:
    """The attribute of one value."""
    if value.role is Role.KNOWN:
        return known_attribute(value, name)
    if isinstance(value.unit, Module):
        return state.look(value.unit, name) or submodule(state, value.unit, name)
    if value.role in _ELSEWHERE:
        return _library_attribute(state, value, name)
    if name == "__dict__" and value.origin is not None and value.role in (Role.INSTANCE, Role.HOLDER):
        return frozenset({Value(Role.CONTAINER, value.origin, MAPPING)})
    held = state.load(value.origin, name) if value.origin is not None else NOTHING
    if isinstance(value.unit, Class):
        found = state.member(value.unit, name)
        held |= frozenset(_bound(member, value) for member in found)
        if held or value.role is Role.CLASS:
            return held
        if value.role is Role.INSTANCE and not held and not value.unit.library_bases() - _PLAIN:
            return NOTHING  # set by nobody so far
    if held:
        return held
    return _library_attribute(state, value, name)


#: Dots in a library's name; `part = part.child` in a loop would make ever longer ones.
DEEPEST_NAME = 10


def known_attribute(value: Value, name: str) -> Values:
    """`name` of a library, or of something in it."""
    if value.name.count(".") >= DEEPEST_NAME:
        return NOTHING
    return known(f"{value.name}.{name}")


@lru_cache(maxsize=4096)
def known(name: str) -> Values:
    """What a library calls by that dotted name."""
    return frozenset({Value(Role.KNOWN, name=name)})


_PLAIN = frozenset({"builtins.object", "abc.ABC", "typing.Generic"})
#: Their origin is the loader or the model: what that holds is not theirs.
_ELSEWHERE = FROM_LOADER | {Role.PARAMETERS, Role.STATE}


def set_attribute(state: State, owner: Value, name: str, values: Values) -> None:
    """`owner.name = values`, also by `setattr`."""
    if isinstance(owner.unit, Module):
        state.elsewhere(owner.unit, name, values)
    elif owner.role is Role.CLASS and isinstance(owner.unit, Class):
        state.name(owner.unit, name, values)
    elif owner.role not in _ELSEWHERE:
        state.store(owner.origin, name, values)


def _bound(member: Value, receiver: Value) -> Value:
    if member.role is not Role.FUNCTION or not isinstance(member.unit, Function) or is_static(member.unit):
        return member
    if "classmethod" in _decorators(member.unit) and isinstance(receiver.unit, Class):
        receiver = Value(Role.CLASS, receiver.unit.node, receiver.unit.node.name, receiver.unit)
    elif receiver.role is Role.CLASS:
        return member
    return Value(Role.METHOD, member.origin, member.name, member.unit, receiver)


def _library_attribute(state: State, value: Value, name: str) -> Values:
    """An attribute of an object whose class the project does not define."""
    if value.role in ROWS:
        if name == "shape" or name in transformers.OUTPUT_FOLDED:
            return frozenset({Value(Role.STATISTIC, value.origin)})
        if name in _OF_ROWS or name in transformers.OUTPUT_ROWS:
            return frozenset({Value(Role.SAMPLES, value.origin)})
    if value.role is Role.MODEL and name == "module":
        return frozenset({value})
    if value.role is Role.LOADER and name == "dataset" and value.origin is not None:
        return frozenset(v for v in state.load(value.origin, OVER) if v.role is Role.DATASET)
    if value.role is Role.METHOD and value.receiver is not None and value.receiver.role is Role.METHOD:
        value = value.receiver  # x.a.b.c is told from x.a.b, but a chain as long as the program runs is not
    return frozenset({Value(Role.METHOD, value.origin, name, None, value)})


#: Attributes of tensors, and fields that batches of text and of graphs have, with one row a sample.
_OF_ROWS = frozenset({"data", "T", "grad", "input_ids", "labels", "x", "y"})


def is_static(unit: Function) -> bool:
    """Whether the first parameter is not filled by the receiver."""
    return "staticmethod" in _decorators(unit)


def _decorators(unit: Function) -> set[str]:
    listed = getattr(unit.node, "decorator_list", ())
    return {d.id for d in listed if isinstance(d, ast.Name)} if listed else set()


def properties(state: State, values: Values) -> Values:
    """Reading a property calls it."""
    if not any(value.role is Role.METHOD and isinstance(value.unit, Function) for value in values):
        return values
    found: set[Value] = set()
    for value in values:
        if value.role is Role.METHOD and isinstance(value.unit, Function) and "property" in _decorators(value.unit):
            assert value.receiver is not None
            state.join_parameter(value.unit, value.unit.positional[0].arg, frozenset({value.receiver}))
            state.enter(value.unit)
            found |= state.result(value.unit)
        else:
            found.add(value)
    return frozenset(found)


def submodule(state: State, module: Module, name: str) -> Values:
    """`package.name` where name is a file of the package."""
    file = state.project.resolve(name, 1, module.file) if module.is_package else None
    return _module(state, name, file)


def module_named(state: State, name: str, level: int, frame: Frame) -> Values:
    """The project's module of that name as seen from a file; nothing for a library."""
    return _module(state, name, state.project.resolve(name, level, module_of(frame.unit).file))


def _module(state: State, name: str, file: SourceFile | None) -> Values:
    """The module of a file, run as far as it can be run now: importing it runs it."""
    found = state.module(file) if file is not None else None
    if found is None:
        return NOTHING
    state.agenda.demand(found)
    return frozenset({Value(Role.MODULE, found.tree, name, found)})
