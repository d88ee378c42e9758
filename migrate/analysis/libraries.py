"""What calling a library function gives: by its row in the tables, else by what goes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis import containers, evaluated, imports, iteration, members, records, rows
from migrate.analysis.arguments import Arguments, folds, tensor, turns
from migrate.analysis.known.table import Computes
from migrate.analysis.roles import FROM_LOADER, NOTHING, ROWS, Role, Value, Values, computed, of_role, texts
from migrate.analysis.state import ANY, ELEMENT, MAPPING, Frame, State
from migrate.analysis.units import Class, Module, module_of
from migrate.analysis.unpacking import inside

if TYPE_CHECKING:
    from collections.abc import Callable


def library(state: State, name: str, arguments: Arguments, frame: Frame) -> Values:
    """What calling a library function gives."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(state, arguments, frame)
    row = state.known.row(name)
    handler = rows.BY_SHAPE.get(type(row))
    given = handler(state, row, name, arguments) if handler is not None and row is not None else None
    return _computed(state, name, arguments) if given is None else given


def _super(state: State, arguments: Arguments, frame: Frame) -> Values:
    return members.superclass(state, arguments.at(0, ""), arguments.at(1, ""), frame)


def _type(state: State, arguments: Arguments, frame: Frame) -> Values:
    """type(x): the class of an object of the project."""
    given = arguments.at(0, "") if len(arguments.positional) == 1 else NOTHING
    found = frozenset(members.class_of(value.unit) for value in given if isinstance(value.unit, Class))
    return found or _computed(state, "builtins.type", arguments)


def _import_module(state: State, arguments: Arguments, frame: Frame) -> Values:
    return imports.imported_by_name(state, arguments, frame) or _computed(state, "importlib", arguments)


def _getattr(state: State, arguments: Arguments, frame: Frame) -> Values:
    """getattr(optim, name): some name of the module; its tables say what all of them have in common."""
    found: set[Value] = set()
    given = texts(arguments.at(1, "name"))
    names = [text for text in given if ANY not in text]
    begins = [text.split(ANY)[0] for text in given if ANY in text[1:]]
    for value in arguments.at(0, "object"):
        if value.role is Role.KNOWN:
            found = found.union(*(members.known_attribute(value, name) for name in names or [ANY]))
            continue
        if isinstance(value.unit, Module) and len(names) < max(len(given), 1):
            found |= imports.anything(state, value.unit, frame)
            continue
        for name in names:
            found |= members.attribute(state, value, name)
        if value.origin is not None and begins:  # getattr(self, "net_" + name)
            for key, held in state.held(value.origin).items():
                if key == ELEMENT or key.startswith(tuple(begins)):
                    found |= held
    return members.properties(state, frozenset(found) | arguments.at(2, "default"))


def _eval(state: State, arguments: Arguments, frame: Frame) -> Values:
    return evaluated.evaluated(state, arguments, frame) or _computed(state, "builtins.eval", arguments)


def _setattr(state: State, arguments: Arguments, frame: Frame) -> Values:
    names = texts(arguments.at(1, "name")) or [ELEMENT]
    for value in arguments.at(0, "object"):
        for name in names:
            members.set_attribute(state, value, ELEMENT if ANY in name else name, arguments.at(2, "value"))
    return NOTHING


def _vars(state: State, arguments: Arguments, frame: Frame) -> Values:
    """vars(x): the attributes of x under their names, the same that x holds."""
    given = arguments.at(0, "object")
    found = frozenset(v if v.role in _MAPPINGS else _mapping_of(v) for v in given if v.origin is not None)
    return found.union(*(members.known_attribute(v, "__dict__") for v in given if v.role is Role.KNOWN))


#: What is taken for the mapping of its names: settings may be read by either.
_MAPPINGS = frozenset({Role.MODULE, Role.HOLDER})


def _mapping_of(value: Value) -> Value:
    return Value(Role.CONTAINER, value.origin, MAPPING)


def _globals(state: State, arguments: Arguments, frame: Frame) -> Values:
    module = module_of(frame.unit)
    return frozenset({Value(Role.MODULE, module.tree, "globals", module)})


_SPECIAL: dict[str, Callable[[State, Arguments, Frame], Values]] = {
    **iteration.SPECIAL,
    **containers.SPECIAL,
    **records.SPECIAL,
    "builtins.super": _super,
    "builtins.type": _type,
    "builtins.__import__": _import_module,
    "importlib.import_module": _import_module,
    "builtins.eval": _eval,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.vars": _vars,
    "builtins.globals": _globals,
}


def _computed(state: State, name: str, arguments: Arguments) -> Values:
    """What follows from what goes in: tensors in, tensors out; rows are kept unless it is known to fold them."""
    is_tensor = isinstance(state.known.row(name), Computes)
    last = name.rsplit(".", 1)[-1]
    inputs = arguments.all()
    from_loader = of_role(inside(state, inputs, depth=1), *FROM_LOADER)
    parameters = of_role(inputs, Role.PARAMETERS)
    if from_loader:
        call = arguments.node
        keeps = is_tensor and not (folds(last, call, is_method=False) or turns(last, call, is_method=False))
        rows = of_role(from_loader, *ROWS) if keeps else NOTHING
        return computed(rows, Role.SAMPLES) | computed(from_loader - rows, Role.STATISTIC) | parameters
    if is_tensor:
        return tensor(state, arguments) | parameters
    return frozenset({Value(Role.UNKNOWN, arguments.node, name)}) | parameters
