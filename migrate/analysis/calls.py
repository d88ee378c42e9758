"""What a call gives, and what flows into the function that it calls."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis import known, members
from migrate.analysis.known import tensors, training
from migrate.analysis.roles import FROM_LOADER, NOTHING, ROWS, Role, Value, Values
from migrate.analysis.state import ELEMENT, OVER, Frame, State
from migrate.analysis.units import Call, Class, Function, FunctionNode, module_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def call(state: State, callees: Values, arguments: Arguments, frame: Frame) -> Values:
    """The values of a call, over everything that may be called."""
    if not callees:
        return _unknown(arguments.node, arguments) if state.settled else NOTHING
    found: set[Value] = set()
    for callee in callees:
        found |= _one(state, callee, arguments, frame)
    return frozenset(found)


class Arguments:
    """The arguments of one call, evaluated."""

    __slots__ = ("named", "node", "positional")

    def __init__(self, node: ast.Call, positional: list[Values], named: dict[str | None, Values]) -> None:
        self.node = node
        self.positional = positional
        self.named = named

    def all(self) -> Values:
        """Every value that is passed."""
        return frozenset().union(*self.positional, *self.named.values())

    def at(self, position: int, keyword: str) -> Values:
        """The argument at a position or under its keyword."""
        if keyword in self.named:
            return self.named[keyword]
        if position < len(self.positional) and not any(isinstance(a, ast.Starred) for a in self.node.args):
            return self.positional[position]
        return NOTHING


def _one(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values:
    if callee.role is Role.KNOWN:
        return _library(state, callee.name, arguments, frame)
    if isinstance(callee.unit, Function):
        return _enter(state, callee, arguments, frame)
    if callee.role is Role.CLASS and isinstance(callee.unit, Class):
        return _instantiate(state, callee.unit, arguments, frame)
    if callee.role is Role.METHOD and callee.receiver is not None:
        return _method(state, callee.receiver, callee.name, arguments, frame)
    if callee.role in (Role.MODEL, Role.CRITERION, Role.INSTANCE):
        return _called(state, callee, arguments, frame)
    return _unknown(arguments.node, arguments)


def _unknown(node: ast.Call, arguments: Arguments) -> Values:
    """A function nobody knows: what it gives depends on the batches that went in, and holds what the program sets."""
    from_loader = {Value(Role.STATISTIC, value.origin) for value in arguments.all() if value.role in FROM_LOADER}
    return frozenset({Value(Role.UNKNOWN, node), *from_loader, *_handed(arguments.all())})


def _handed(values: Iterable[Value]) -> Values:
    return frozenset(value for value in values if value.role is Role.PARAMETERS)


# --- functions and classes of the project ---------------------------------------------------------------------------


def function(state: State, node: FunctionNode, frame: Frame, owner: Class | None = None) -> Function:
    """The unit of a function definition; the same object each time."""
    if node not in state.functions:
        parent = frame.unit if isinstance(frame.unit, Function) else None
        state.functions[node] = Function(node, module_of(frame.unit), owner, parent)
        state.changed = True
    return state.functions[node]


def _enter(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values:
    unit = callee.unit
    assert isinstance(unit, Function)
    bound = callee.role is Role.METHOD
    if arguments.node not in unit.calls:
        unit.calls[arguments.node] = Call(arguments.node, frame.unit, bound)
        state.changed = True
    positional = unit.positional
    if bound and positional:
        assert callee.receiver is not None
        state.join_parameter(unit, positional[0].arg, frozenset({callee.receiver}))
        positional = positional[1:]
    _fill(state, unit, positional, arguments, frame)
    if unit.yields:
        state.store(unit.node, ELEMENT, unit.yields)
        state.store(unit.node, OVER, frozenset(v for v in arguments.all() if v.role in (Role.LOADER, Role.ITERATOR)))
        return frozenset({Value(Role.ITERATOR, unit.node)})
    return unit.returns


def _fill(state: State, unit: Function, positional: list[ast.arg], arguments: Arguments, frame: Frame) -> None:
    """Join the arguments of one call into the parameters."""
    node = arguments.node
    for position, (argument, values) in enumerate(zip(node.args, arguments.positional, strict=False)):
        if isinstance(argument, ast.Starred):
            inner = state.iterated(values)
            for parameter in positional[position:]:
                state.join_parameter(unit, parameter.arg, inner)
            break
        if position < len(positional):
            name = positional[position].arg
            state.join_parameter(unit, name, _passed(state, values, name, unit, node, frame))
        elif unit.node.args.vararg is not None:
            state.store(unit.node.args.vararg, str(position - len(positional)), values)
    names = {parameter.arg for parameter in (*unit.positional, *unit.node.args.kwonlyargs)}
    for keyword, values in arguments.named.items():
        if keyword in names:
            state.join_parameter(unit, keyword, _passed(state, values, keyword, unit, node, frame))
        elif keyword is not None and unit.node.args.kwarg is not None:
            state.store(unit.node.args.kwarg, keyword, values)


def _passed(state: State, values: Values, name: str, unit: Function, node: ast.Call, frame: Frame) -> Values:
    """The values with the call as one more link of their evidence."""
    what = f"argument {name} of {unit.name}()"
    return frozenset(
        replace(value, because=state.because(what, node, frame.unit, value.because)) if value.because else value
        for value in values
    )


def _instantiate(state: State, cls: Class, arguments: Arguments, frame: Frame) -> Values:
    node = arguments.node
    made = instance(state, cls, node, frame)
    init = cls.lookup("__init__")
    for member in init:
        if isinstance(member.unit, Function):
            _enter(state, Value(Role.METHOD, unit=member.unit, receiver=made), arguments, frame)
    _over(state, made, node, arguments, made.role)
    return frozenset({made})


def instance(state: State, cls: Class, origin: ast.AST, frame: Frame) -> Value:
    """An object of a project class, with the role of the library class that it derives from."""
    because = state.because(f"{cls.node.name}() made here", origin, frame.unit)
    return Value(role_of(cls), origin, cls.node.name, cls, because=because)


#: Roles that a project class takes over from the library class it derives from.
_INHERITED = (Role.MODEL, Role.DATASET, Role.OPTIMIZER, Role.SCHEDULER, Role.SAMPLER, Role.LOADER, Role.CRITERION)


def role_of(cls: Class) -> Role:
    """What objects of a project class are for."""
    found = {known.role_of_base(name) for name in cls.library_bases()}
    return next((role for role in _INHERITED if role in found), Role.INSTANCE)


_OVER = {
    Role.OPTIMIZER: (0, "params"),
    Role.SCHEDULER: (0, "optimizer"),
    Role.LOADER: (0, "dataset"),
}


def _over(state: State, made: Value, node: ast.Call, arguments: Arguments, role: Role) -> None:
    """Remember what an optimizer trains, what a scheduler drives, what a loader reads."""
    if role in _OVER:
        state.store(node, OVER, arguments.at(*_OVER[role]))


def _called(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values:
    """Calling an object: a model gives rows for rows, a loss function folds them."""
    if isinstance(callee.unit, Class):
        name = "__call__" if callee.role is Role.INSTANCE else "forward"
        for member in callee.unit.lookup(name):
            if isinstance(member.unit, Function):
                given = Value(Role.METHOD, unit=member.unit, receiver=callee)
                returned = _enter(state, given, arguments, frame)
                if callee.role is Role.INSTANCE:
                    return returned
    role = Role.STATISTIC if callee.role is Role.CRITERION else Role.SAMPLES
    from_loader = {Value(role, value.origin) for value in arguments.all() if value.role in FROM_LOADER}
    return frozenset(from_loader) or frozenset({Value(Role.TENSOR, arguments.node)})


# --- libraries ------------------------------------------------------------------------------------------------------


def _library(state: State, name: str, arguments: Arguments, frame: Frame) -> Values:
    node = arguments.node
    special = _SPECIAL.get(name)
    if special is not None:
        return special(state, arguments, frame)
    passing = known.passes(name)
    if passing is not None and (arguments.positional or arguments.named):
        values = arguments.positional[0] if arguments.positional else next(iter(arguments.named.values()))
        if passing.role is Role.ITERATOR:
            return _iterator(state, node, values)
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
    made = Value(role, node, name, because=state.because(f"{name}() made here", node, frame.unit))
    if over is not None:
        state.store(node, OVER, arguments.at(*over))
    if role is Role.LOADER:
        state.store(node, "<sampler>", arguments.named.get("sampler", NOTHING))
    return frozenset({made})


def _iterator(state: State, node: ast.Call, values: Values) -> Values:
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
    selves = unit.parameters.get(unit.positional[0].arg, NOTHING)
    bases = [base.unit for base in unit.owner.bases if isinstance(base.unit, Class)]
    return frozenset(replace(value, unit=base) for value in selves for base in bases)


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
            found |= {Value(Role.KNOWN, name=f"{value.name}.{name}") for name in names or ["<any>"]}
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
    handed = _handed(inputs)
    if from_loader:
        keeps = name.startswith("torch.") and not folds(last, arguments)
        return (
            frozenset(
                Value(Role.SAMPLES if keeps and value.role in ROWS else Role.STATISTIC, value.origin)
                for value in from_loader
            )
            | handed
        )
    if name.startswith("torch."):
        return frozenset({Value(Role.TENSOR, arguments.node, name)}) | handed
    return frozenset({Value(Role.UNKNOWN, arguments.node, name)}) | handed


def _inside(state: State, values: Values) -> Values:
    """The values and, one level deep, what they contain: torch.cat([a, b])."""
    found = set(values)
    for value in values:
        if value.role is Role.CONTAINER:
            found |= state.iterated([value])
    return frozenset(found)


def folds(name: str, arguments: Arguments) -> bool:
    """Whether a function or method folds the rows of a batch away."""
    if name in tensors.FOLDING:
        return True
    if name not in tensors.FOLDING_WITHOUT_DIM:
        return False
    given = arguments.node.args[1:] if _is_function(arguments.node) else arguments.node.args
    dims = [k.value for k in arguments.node.keywords if k.arg in ("dim", "axis")] + list(given[:1])
    return not dims or any(isinstance(d, ast.Constant) and d.value == 0 for d in dims)


def _is_function(node: ast.Call) -> bool:
    """torch.sum(x, 1) against x.sum(1)."""
    return (
        isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id
        in (
            "torch",
            "F",
            "np",
        )
    )


# --- methods of objects whose class a library defines ---------------------------------------------------------------


def _method(state: State, receiver: Value, name: str, arguments: Arguments, frame: Frame) -> Values:
    handler = _METHODS.get(receiver.role)
    if handler is not None:
        return handler(state, receiver, name, arguments)
    if name in {"parse_args", "parse_known_args"}:
        return frozenset({Value(Role.HOLDER, arguments.node)})
    if receiver.role is Role.METHOD and receiver.receiver is not None and receiver.receiver.role in ROWS:
        return frozenset({Value(Role.STATISTIC, receiver.receiver.origin)})
    return _unknown(arguments.node, arguments)


def _of_model(state: State, model: Value, name: str, arguments: Arguments) -> Values:
    if name in training.FLUENT:
        return frozenset({model})
    if name in ("parameters", "named_parameters"):
        return frozenset({Value(Role.PARAMETERS, model.origin)})
    if name == "state_dict":
        return frozenset({Value(Role.STATE, model.origin)})
    from_loader = {Value(Role.SAMPLES, value.origin) for value in arguments.all() if value.role in FROM_LOADER}
    return frozenset(from_loader) or frozenset({Value(Role.TENSOR, arguments.node)})


def _of_rows(state: State, rows: Value, name: str, arguments: Arguments) -> Values:
    if rows.role is Role.BATCH and name in ("items", "values", "keys"):
        if name != "items":
            return frozenset({rows})
        state.store(arguments.node.func, "0", frozenset({Value(Role.TEXT, name="<key>")}))
        state.store(arguments.node.func, "1", frozenset({rows}))
        state.store(arguments.node, ELEMENT, frozenset({Value(Role.CONTAINER, arguments.node.func)}))
        # Also the batch itself: a comprehension over its items gives a batch again.
        return frozenset({Value(Role.ITERATOR, arguments.node), rows})
    if name in tensors.MOVES or name in ("float", "long", "int", "double", "half", "contiguous", "pin_memory", "get"):
        return frozenset({rows})
    if folds(name, arguments):
        return frozenset({Value(Role.STATISTIC, rows.origin)})
    return frozenset({Value(Role.SAMPLES, rows.origin)})


def _of_statistic(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    return frozenset({value})


def _of_loader(state: State, loader: Value, name: str, arguments: Arguments) -> Values:
    if name == "__iter__":
        return _iterator(state, arguments.node, frozenset({loader}))
    return NOTHING


def _of_iterator(state: State, iterator: Value, name: str, arguments: Arguments) -> Values:
    if name in ("next", "__next__"):
        return state.iterated([iterator])
    return NOTHING


def _of_optimizer(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    return frozenset({Value(Role.STATE, value.origin)}) if name == "state_dict" else NOTHING


def _of_tensor(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    return frozenset({value})


def _of_device(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    return NOTHING


def _of_container(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    assert value.origin is not None
    if name in ("append", "add", "insert"):
        state.store(value.origin, ELEMENT, arguments.positional[-1] if arguments.positional else NOTHING)
        return NOTHING
    if name == "extend":
        state.store(value.origin, ELEMENT, state.iterated(arguments.all()))
        return NOTHING
    if name == "update":
        for other in arguments.all():
            if other.origin is not None:
                state.copy(other.origin, value.origin)
        return NOTHING
    if name in ("values", "copy"):
        return frozenset({value})
    if name == "items":
        state.store(arguments.node.func, "1", state.iterated([value]))
        state.store(arguments.node, ELEMENT, frozenset({Value(Role.CONTAINER, arguments.node.func)}))
        return frozenset({Value(Role.ITERATOR, arguments.node)})
    if name in ("get", "pop"):
        return state.iterated([value])
    return NOTHING


def _of_text(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    return frozenset({Value(Role.TEXT, name="<formatted>")})


def _of_accelerator(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    """What an accelerator gives back is what it was given: one object, or all of them in order."""
    if name not in ("prepare", "gather", "gather_for_metrics", "unwrap_model", "reduce"):
        return NOTHING
    if len(arguments.positional) == 1:
        return arguments.positional[0]
    for position, values in enumerate(arguments.positional):
        state.store(arguments.node, str(position), values)
    return frozenset({Value(Role.CONTAINER, arguments.node)})


_METHODS: dict[Role, Callable[[State, Value, str, Arguments], Values]] = {
    Role.MODEL: _of_model,
    Role.CRITERION: _of_tensor,
    Role.BATCH: _of_rows,
    Role.SAMPLES: _of_rows,
    Role.STATISTIC: _of_statistic,
    Role.LOADER: _of_loader,
    Role.ITERATOR: _of_iterator,
    Role.OPTIMIZER: _of_optimizer,
    Role.SCHEDULER: _of_optimizer,
    Role.ACCELERATOR: _of_accelerator,
    Role.TENSOR: _of_tensor,
    Role.PARAMETERS: _of_tensor,
    Role.DEVICE: _of_device,
    Role.CONTAINER: _of_container,
    Role.TEXT: _of_text,
}
