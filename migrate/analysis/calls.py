"""What a call gives, and what flows into the function of the project that it enters."""

from __future__ import annotations

import ast

from migrate.analysis.arguments import Arguments, unknown
from migrate.analysis.libraries import library
from migrate.analysis.methods import method
from migrate.analysis.roles import FROM_LOADER, NOTHING, ROWS, Role, Value, Values
from migrate.analysis.state import ELEMENT, OVER, Frame, State
from migrate.analysis.units import Call, Class, Function, FunctionNode, module_of


def call(state: State, callees: Values, arguments: Arguments, frame: Frame) -> Values:
    """The values of a call, over everything that may be called."""
    if not callees:
        is_needed = not (isinstance(frame.statement, ast.Expr) and frame.statement.value is arguments.node)
        return unknown(arguments.node, arguments) if is_needed and state.settled else NOTHING
    found: set[Value] = set()
    for callee in callees:
        found |= _one(state, callee, arguments, frame)
    return frozenset(found)


def _one(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values:
    if callee.role is Role.KNOWN:
        return library(state, callee.name, arguments, frame)
    if isinstance(callee.unit, Function):
        return _enter(state, callee, arguments, frame)
    if callee.role is Role.CLASS and isinstance(callee.unit, Class):
        return _instantiate(state, callee.unit, arguments, frame)
    if callee.role is Role.METHOD and callee.receiver is not None:
        if callee.receiver.role is Role.OPTIMIZER:
            _call_closures(state, arguments, frame)
        return method(state, callee.receiver, callee.name, arguments, frame)
    if callee.role in (Role.MODEL, Role.CRITERION, Role.INSTANCE):
        return _called(state, callee, arguments, frame)
    return unknown(arguments.node, arguments)


# --- functions and classes of the project ---------------------------------------------------------------------------


def _call_closures(state: State, arguments: Arguments, frame: Frame) -> None:
    """`optimizer.step(closure)` calls the closure."""
    for value in arguments.all():
        if isinstance(value.unit, Function):
            _enter(state, value, Arguments(arguments.node, [], {}), frame)


def function(state: State, node: FunctionNode, frame: Frame, owner: Class | None = None) -> Function:
    """The unit of a function definition; the same object each time."""
    if node not in state.functions:
        parent = frame.unit if isinstance(frame.unit, Function) else None
        state.functions[node] = Function(node, module_of(frame.unit), owner, parent)
    return state.functions[node]


def _enter(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values:
    """Run the function that is called with what is known of its arguments, and say what it gives."""
    unit = _pass(state, callee, arguments, frame)
    state.enter(unit)
    returned = state.result(unit)
    if unit.yields:
        state.store(unit.node, ELEMENT, unit.yields)
        state.store(unit.node, OVER, frozenset(v for v in arguments.all() if v.role in (Role.LOADER, Role.ITERATOR)))
        return frozenset({Value(Role.ITERATOR, unit.node)})
    return returned


def _pass(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Function:
    """Join receiver and arguments into the parameters of the function that is called."""
    unit = callee.unit
    assert isinstance(unit, Function)
    bound = callee.role is Role.METHOD
    if arguments.node not in unit.calls:
        unit.calls[arguments.node] = Call(arguments.node, frame.unit, bound)
    positional = unit.positional
    if bound and positional:
        assert callee.receiver is not None
        state.join_parameter(unit, positional[0].arg, frozenset({callee.receiver}))
        positional = positional[1:]
    _fill(state, unit, positional, arguments)
    return unit


def _fill(state: State, unit: Function, positional: list[ast.arg], arguments: Arguments) -> None:
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
            state.join_parameter(unit, name, values)
        elif unit.node.args.vararg is not None:
            state.store(unit.node.args.vararg, str(position - len(positional)), values)
    names = {parameter.arg for parameter in (*unit.positional, *unit.node.args.kwonlyargs)}
    for keyword, values in arguments.named.items():
        if keyword in names:
            state.join_parameter(unit, keyword, values)
        elif keyword is not None and unit.node.args.kwarg is not None:
            state.store(unit.node.args.kwarg, keyword, values)


def _instantiate(state: State, cls: Class, arguments: Arguments, frame: Frame) -> Values:
    node = arguments.node
    made = instance(state, cls, node, frame)
    init = state.member(cls, "__init__")
    for member in init:
        if isinstance(member.unit, Function):
            _enter(state, Value(Role.METHOD, unit=member.unit, receiver=made), arguments, frame)
    _over(state, made, node, arguments, made.role)
    return frozenset({made})


def instance(state: State, cls: Class, origin: ast.AST, frame: Frame) -> Value:
    """An object of a project class, with the role of the library class that it derives from."""
    made = Value(role_of(state, cls), origin, cls.node.name, cls)
    for known_class in cls.lineage():
        known_class.instances |= {made}
    return made


#: Roles that a project class takes over from the library class it derives from.
_INHERITED = (Role.MODEL, Role.DATASET, Role.OPTIMIZER, Role.SCHEDULER, Role.SAMPLER, Role.LOADER, Role.CRITERION)


def role_of(state: State, cls: Class) -> Role:
    """What objects of a project class are for."""
    found = {state.known.role_of_base(name) for name in cls.library_bases()}
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
        for member in state.member(callee.unit, name):
            if isinstance(member.unit, Function):
                given = Value(Role.METHOD, unit=member.unit, receiver=callee)
                if callee.role is Role.INSTANCE:
                    return _enter(state, given, arguments, frame)
                if _pass(state, given, arguments, frame).matters:  # what comes out is known without running it
                    state.enter(member.unit)
    inputs = arguments.all()
    keeps_rows = callee.role is not Role.CRITERION and any(value.role in ROWS for value in inputs)
    role = Role.SAMPLES if keeps_rows else Role.STATISTIC
    from_loader = {Value(role, value.origin) for value in inputs if value.role in FROM_LOADER}
    return frozenset(from_loader) or frozenset({Value(Role.TENSOR, arguments.node)})
