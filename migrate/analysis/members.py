"""What a name or an attribute means, and what setting an attribute changes."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache

from migrate.analysis import imports, settings
from migrate.analysis.exports import may_bind
from migrate.analysis.known import transformers
from migrate.analysis.own_parameters import registered
from migrate.analysis.roles import BELONGING, NOTHING, ROWS, Role, Value, Values, of_role
from migrate.analysis.state import MAPPING, OVER, Frame, State
from migrate.analysis.units import Class, Function, Module

SUPER = "super"  # the name of a value that stands for `super()`: unit is the class that says so, receiver the object


# --- names ----------------------------------------------------------------------------------------------------------


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
    return known(f"builtins.{name}") if hasattr(builtins, name) else _starred(state, name, unit)


def _starred(state: State, name: str, module: Module) -> Values:
    """A name that nothing binds comes from the one library of which everything is imported, or its row says so."""
    libraries = state.look(module, imports.STAR) or NOTHING
    if not libraries or may_bind(module, name):
        return NOTHING
    found = {f"{library.name}.{name}" for library in libraries}
    exact = {dotted for dotted in found if (row := state.known.row(dotted)) is not None and row.name == dotted}
    return frozenset(Value(Role.KNOWN, name=dotted) for dotted in (found if len(found) == 1 else exact))


def give_name(state: State, name: str, values: Values, frame: Frame) -> None:
    """Give a name its values: here, or where `global` or `nonlocal` says that it lives."""
    if name in frame.shared:
        state.elsewhere(frame.shared[name], name, values)
    else:
        frame.names[name] = values
        state.name(frame.unit, name, values)


# --- attributes -----------------------------------------------------------------------------------------------------


def attribute(state: State, value: Value, name: str) -> Values:
    """The attribute of one value."""
    if value.role is Role.KNOWN:
        return known_attribute(value, name)
    if isinstance(value.unit, Module):
        return frozenset({value}) if name == "__dict__" else imports.member(state, value.unit, name)
    if value.role in BELONGING:
        return _library_attribute(state, value, name)
    if name == "__dict__" and value.origin is not None and value.role in (Role.INSTANCE, Role.HOLDER):
        is_read = value.role is Role.HOLDER  # settings may be read as a mapping, too
        return frozenset({value if is_read else Value(Role.CONTAINER, value.origin, MAPPING)})
    held = state.load(value.origin, name) if value.origin is not None else NOTHING
    if isinstance(value.unit, Class):
        if name == "__class__":
            return frozenset({class_of(value.unit)})
        held |= _of_class(state, value, value.unit, name)
        if not held and value.name == SUPER and value.receiver is not None and name in _GIVING_BACK:
            return _library_attribute(state, value.receiver, name)
        if not held and value.role is Role.CLASS:
            is_making = name in transformers.MAKING and bool(value.unit.library_bases() - PLAIN)
            if is_making or reads_settings(value.unit):
                return frozenset({Value(Role.METHOD, value.origin, name, None, value)})
        if held or value.role is Role.CLASS or _is_expected(value.unit, name):
            return held
    if held:
        return settings.under(value, name, held)
    return _library_attribute(state, value, name)


def _of_class(state: State, value: Value, cls: Class, name: str) -> Values:
    """What the classes of an object, or a class, have under a name, bound to it."""
    if value.name == SUPER and value.receiver is not None:
        receiver = value.receiver
        start = receiver.unit if isinstance(receiver.unit, Class) else cls
        found = state.member(start, name, after=cls)
    else:
        receiver, found = value, state.member(cls, name)
    return frozenset(_bound(member, receiver) for member in found)


def reads_settings(cls: Class) -> bool:
    """Whether a class is made of fields by a decorator: what that adds to it reads them, `Args.from_args()`."""
    fields = [each for each in cls.node.body if isinstance(each, ast.AnnAssign)]
    return bool(fields) and bool(cls.node.decorator_list) and "__init__" not in cls.names


def _is_expected(cls: Class, name: str) -> bool:
    """Whether an attribute is the project's own, so that not to know it yet says nothing of a library."""
    if any(name in other.names or other.sets(name) for other in cls.mro()):
        return True
    return cls.library_bases() <= PLAIN


#: What classes override to move more than the library does, and get the object from: `return super().to(device)`.
_GIVING_BACK = frozenset({"to", "cuda", "cpu", "float", "half", "double"})
#: Bases that bring no attributes an instance is used for.
PLAIN = frozenset({"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"})


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


def _bound(member: Value, receiver: Value) -> Value:
    if member.role is not Role.FUNCTION or not isinstance(member.unit, Function):
        return member
    kinds = decorators(member.unit)
    if "classmethod" in kinds and isinstance(receiver.unit, Class):
        return Value(Role.METHOD, member.origin, member.name, member.unit, class_of(receiver.unit))
    if receiver.role is Role.CLASS or "staticmethod" in kinds:
        return member
    return Value(Role.METHOD, member.origin, member.name, member.unit, receiver)


def class_of(cls: Class) -> Value:
    """A class as a value."""
    return Value(Role.CLASS, cls.node, cls.node.name, cls)


def _library_attribute(state: State, value: Value, name: str) -> Values:
    """An attribute of an object whose class the project does not define."""
    if value.role in ROWS:
        if name in _WITHOUT_ROWS or name in transformers.OUTPUT_FOLDED:
            return frozenset({Value(Role.STATISTIC, value.origin)})
        if name in _OF_ROWS or name in transformers.OUTPUT_ROWS:
            return frozenset({Value(Role.SAMPLES, value.origin)})
    if value.role in _NUMBERS and name == "data":
        return frozenset({value})
    if value.role is Role.MODEL and name == "module":
        return frozenset({value})
    if (value.role is Role.MODEL and name == "_modules") or (value.role is Role.PARAMETERS and name in _OF_LAYERS):
        return frozenset({Value(Role.PARAMETERS, value.origin)})
    if value.role is Role.LOADER and name == "dataset" and value.origin is not None:
        return of_role(state.load(value.origin, OVER), Role.DATASET)
    if value.name == SUPER and value.receiver is not None:
        value = value.receiver
    if value.role is Role.METHOD and value.receiver is not None and value.receiver.role is Role.METHOD:
        value = value.receiver  # x.a.b.c is told from x.a.b, but a chain as long as the program runs is not
    return frozenset({Value(Role.METHOD, value.origin, name, None, value)})


#: Tensors without rows.
_NUMBERS = frozenset({Role.STATISTIC, Role.TENSOR})

#: What a layer, known by what it holds, has of it.
_OF_LAYERS = frozenset({"weight", "bias"})

#: Attributes of tensors, and fields that batches of text and of graphs have, with one row a sample.
_OF_ROWS = frozenset({"data", "grad", "input_ids", "labels", "x", "y"})
#: Attributes of tensors that say sizes, or turn the dimensions.
_WITHOUT_ROWS = frozenset({"shape", "T", "mT", "H", "mH"})


def decorators(unit: Function) -> frozenset[str]:
    """The last names of what a function is decorated with: `property`, `cached_property`, `setter`."""
    listed = getattr(unit.node, "decorator_list", None)
    return frozenset(name for each in listed if (name := _last_name(each)) is not None) if listed else _UNDECORATED


_UNDECORATED: frozenset[str] = frozenset()


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


PROPERTIES = frozenset({"property", "cached_property", "abstractproperty"})


def properties(state: State, values: Values) -> Values:
    """What reading attributes gives that have these values: of a property, what calling it gives."""
    for value in values:
        if value.role is Role.METHOD and value.unit is not None:
            return _read(state, values)
    return values


def _read(state: State, values: Values) -> Values:
    found: set[Value] = set()
    for value in values:
        if value.role is Role.METHOD and isinstance(value.unit, Function) and decorators(value.unit) & PROPERTIES:
            _receive(state, value.unit, value.receiver)
            state.enter(value.unit)
            found |= state.result(value.unit)
        else:
            found.add(value)
    return frozenset(found)


def _receive(state: State, unit: Function, receiver: Value | None) -> None:
    if receiver is not None and unit.positional:
        state.join_parameter(unit, unit.positional[0].arg, frozenset({receiver}))


def set_attribute(state: State, owner: Value, name: str, values: Values) -> None:
    """`owner.name = values`, also by `setattr`: into the object, or through the setter of its class."""
    if isinstance(owner.unit, Module):
        state.elsewhere(owner.unit, name, values)
        return
    if owner.role is Role.CLASS and isinstance(owner.unit, Class):
        state.name(owner.unit, name, values)
        return
    if owner.role in BELONGING:
        return
    setters = state.member(owner.unit, setter_of(name)) if isinstance(owner.unit, Class) else NOTHING
    for setter in setters:
        if isinstance(setter.unit, Function) and len(setter.unit.positional) > 1:
            _receive(state, setter.unit, owner)
            state.join_parameter(setter.unit, setter.unit.positional[1].arg, values)
            state.enter(setter.unit)
    if not setters:
        state.store(owner.origin, name, values)
        registered(state, owner, name, values)


def setter_of(name: str) -> str:
    """Under what a class keeps the setter of a property."""
    return f"{name}="


def superclass(state: State, classes: Values, receivers: Values, frame: Frame) -> Values:
    """`super()` in a method, or `super(cls, self)`: the receivers, seen as what comes after the class."""
    unit = frame.unit
    while isinstance(unit, Function) and unit.owner is None and unit.parent is not None:
        unit = unit.parent
    if not classes and isinstance(unit, Function) and unit.owner is not None and unit.positional:
        classes = frozenset({class_of(unit.owner)})
        receivers = state.parameter(unit, unit.positional[0].arg)
    return frozenset(
        receiver._replace(name=SUPER, unit=cls.unit, receiver=receiver)
        for cls in classes
        if isinstance(cls.unit, Class)
        for receiver in receivers
        if isinstance(receiver.unit, Class)
    )
