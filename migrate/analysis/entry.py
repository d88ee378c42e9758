"""Entering a function of the project: what flows into its parameters, and what comes out."""

from __future__ import annotations

import ast
from functools import lru_cache, partial

from migrate.analysis import hooks
from migrate.analysis.arguments import Arguments
from migrate.analysis.construction import keep_arguments
from migrate.analysis.factories import copy_for, hold_rest
from migrate.analysis.results import of_this_call
from migrate.analysis.roles import NOTHING, Role, Value, Values, of_role
from migrate.analysis.state import ELEMENT, OVER, Frame, State
from migrate.analysis.syntax import gives_up, own_nodes
from migrate.analysis.units import Class, Function, FunctionNode, module_of
from migrate.analysis.unpacking import inside

#: The name of the iterators that calls of generator functions make.
GENERATOR = "generator"
_PARTS = 2  # so many objects of a class that is a part of models are looked at


def function(state: State, node: FunctionNode, frame: Frame, owner: Class | None = None) -> Function:
    """The unit of a function definition; the same object each time."""
    if node not in state.functions:
        parent = frame.unit if isinstance(frame.unit, Function) else None
        unit = state.functions[node] = Function(node, module_of(frame.unit), owner, parent)
        unit.rest, unit.others = node.args.vararg, node.args.kwarg
        hold_rest(state, unit)
    return state.functions[node]


def enter(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values:
    """Run the function that is called with what is known of its arguments, and say what it gives."""
    unit, here = hand(state, callee, arguments, frame)
    if arguments.handed is None:
        state.handed.setdefault((arguments.node, frame.unit), {})[unit] = here
    state.enter(unit)
    state.agenda.demand(unit)
    returned, yielded = _results(state, unit, here)
    if not returned and not yielded and (unit.returns or unit.yields) and state.agenda.refresh(unit):
        returned, yielded = _results(state, unit, here)  # all that there was came from other calls
    return _generator(state, unit, arguments, yielded) if unit.yields else returned


def _results(state: State, unit: Function, here: Values) -> tuple[Values, Values]:
    """What a call returns and yields."""
    if len(unit.original.calls) == 1:
        return state.result(unit), unit.yields
    return state.agenda.remembered((id(unit), here), partial(_of_call, state, unit, here))


def _of_call(state: State, unit: Function, here: Values) -> tuple[Values, Values]:
    returned, yielded = state.result(unit), unit.yields
    return (
        returned and of_this_call(state, unit, returned, here),
        yielded and of_this_call(state, unit, yielded, here, is_generator=True),
    )


def hand(state: State, callee: Value, arguments: Arguments, frame: Frame) -> tuple[Function, Values]:
    """Join receiver and arguments into the parameters of the function that is called; it, and all that was handed."""
    unit, caller, node = callee.unit, frame.unit, arguments.node
    assert isinstance(unit, Function)
    hooks.hand_on(unit, caller, node, is_bound=callee.role is Role.METHOD)
    made = hooks.call_of(state, callee, arguments, frame)
    unit.calls.setdefault(made.node, made)
    given, positional, front = {}, unit.positional, list[Values]()
    if callee.role is Role.METHOD:
        assert callee.receiver is not None
        if not positional:  # `def method(*args)`
            front = [frozenset({callee.receiver})]
        elif not _is_one_more_part(state, unit, callee.receiver):
            given[positional[0].arg] = frozenset({callee.receiver})
        positional = positional[1:]
    more = _bind(unit, positional, arguments, given)
    site = arguments.site if frame.round is not None else node
    unit = state.entered[site, caller, unit.node] = copy_for(state, unit, site, caller)
    for name, values in given.items():
        state.join_parameter(unit, name, values)
    _keep_rest(state, unit, [*front, *arguments.positional[len(positional) :]], more, arguments)
    keep_arguments(state, unit, callee.receiver if callee.role is Role.METHOD else None, positional, arguments, frame)
    return unit, arguments.all().union(*given.values())


def _is_one_more_part(state: State, unit: Function, receiver: Value) -> bool:
    """Whether a method has been run for such parts of models, so that one more would teach nothing new."""
    if receiver.role is not Role.MODEL or receiver.origin is None:
        return False
    known = unit.parameters.get(unit.positional[0].arg, NOTHING)
    home = state.homes.get(receiver.origin)
    return len(known) >= _PARTS and receiver not in known and isinstance(home, Function) and home.builds_model


def _bind(
    unit: Function, positional: list[ast.arg], arguments: Arguments, given: dict[str, Values]
) -> dict[str, Values]:
    """Add the arguments of one call to what is given to each parameter; the keywords that are left."""
    signature = unit.node.args
    for parameter, values in zip(positional, arguments.positional, strict=False):
        given[parameter.arg] = values
    left = positional[len(arguments.positional) :]
    for parameter in left if arguments.rest else ():
        given[parameter.arg] = arguments.rest
    names = {parameter.arg for parameter in (*unit.positional, *signature.kwonlyargs)}
    more = {}
    for keyword, values in arguments.named.items():
        if keyword in names:
            given[keyword] = values
        else:
            more[keyword] = values
    for parameter in (*left, *signature.kwonlyargs) if arguments.others else ():
        given.setdefault(parameter.arg, arguments.others)
    return more


def _keep_rest(
    state: State, unit: Function, further: list[Values], more: dict[str, Values], arguments: Arguments
) -> None:
    """Put what no parameter takes into `*args` and `**kwargs`."""
    if unit.rest is not None:
        for position, values in enumerate(further):
            state.store(unit.rest, str(position), values)
        state.store(unit.rest, ELEMENT, arguments.rest)
    if unit.others is not None:
        for keyword, values in more.items():
            state.store(unit.others, keyword, values)
        state.store(unit.others, ELEMENT, arguments.others)


def invoke(state: State, receiver: Value, name: str, *given: Values) -> tuple[Values, Values] | None:
    """What a special method returns and yields that no call of the source names: `__iter__`, `__getitem__`.

    None: the class of the receiver has no such method.
    """
    if not isinstance(receiver.unit, Class):
        return None
    returned: set[Value] = set()
    yielded: set[Value] = set()
    units = [member.unit for member in state.member(receiver.unit, name) if isinstance(member.unit, Function)]
    for unit in units:
        for parameter, values in zip(unit.positional, (frozenset({receiver}), *given), strict=False):
            state.join_parameter(unit, parameter.arg, values)
        state.enter(unit)
        returned |= state.result(unit)
        yielded |= unit.yields
    return (frozenset(returned), frozenset(yielded)) if units else None


def _generator(state: State, unit: Function, arguments: Arguments, yields: Values) -> Values:
    """What a generator function gives: an iterator that knows which loaders it runs over."""
    node, given = arguments.node, arguments.all()
    state.store(node, ELEMENT, yields)
    state.store(node, OVER, of_role(given, Role.LOADER, Role.ITERATOR))
    batches = {value.origin for value in inside(state, yields) if value.role is Role.BATCH}
    state.store(node, OVER, frozenset(loader for loader in _run_over(state, unit) if loader.origin in batches))
    return frozenset({Value(Role.ITERATOR, node, GENERATOR)})


def _run_over(state: State, unit: Function) -> Values:
    """The loaders that the loops of a function run over, or that it takes from one by one."""
    found: Values = NOTHING
    for source in _sources(unit.node):
        found |= state.loaders(state.values.get(source, NOTHING))
    return found


@lru_cache(maxsize=256)
def _sources(function: FunctionNode) -> tuple[ast.expr, ...]:
    """What a function takes one by one: in loops, by `yield from`, by `next`."""
    found = []
    for node in own_nodes(function):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            found.append(node.iter)
        elif isinstance(node, ast.YieldFrom):
            found.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next":
            found += node.args[:1]
    return tuple(found)


def loaders_of(state: State, values: Values) -> Values:
    """The loaders whose batches are among the values, or in the tuples and dictionaries among them."""
    return frozenset(Value(Role.LOADER, value.origin) for value in inside(state, values) if value.role is Role.BATCH)


def entered(state: State, values: Values) -> Values:
    """What `with value as name` gives the name."""
    found: set[Value] = set()
    for value in values:
        given = invoke(state, value, "__enter__")
        invoke(state, value, "__exit__", NOTHING, NOTHING, NOTHING)  # what it is told of an error is not known
        if given is not None:
            found |= given[0]
        elif value.role is Role.ITERATOR and value.name == GENERATOR:  # a function under `contextlib.contextmanager`
            found |= state.iterated([value])
        else:
            found.add(value)
    return frozenset(found)


def may_swallow(state: State, context: ast.expr, values: Values) -> bool:
    """Whether `with context` goes on behind its block where that raises; `values` are those of the context."""
    if isinstance(context, ast.Call):
        made_by = (value.unit for value in state.values.get(context.func, NOTHING))
        if any(isinstance(unit, Function) and _catches_at_yield(unit.node) for unit in made_by):
            return True
    for value in values:
        if value.name == "contextlib.suppress":
            return True
        units = state.member(value.unit, "__exit__") if isinstance(value.unit, Class) else NOTHING
        if any(isinstance(member.unit, Function) and _gives_truth(member.unit.node) for member in units):
            return True
    return False


def _gives_truth(function: FunctionNode) -> bool:
    returned = [node.value for node in own_nodes(function) if isinstance(node, ast.Return) and node.value is not None]
    return any(not isinstance(value, ast.Constant) or bool(value.value) for value in returned)


@lru_cache(maxsize=256)
def _catches_at_yield(function: FunctionNode) -> bool:
    """Whether a generator function may go on where what it yielded to raises."""
    tries = (node for node in own_nodes(function) if isinstance(node, ast.Try))
    guarded = (node for node in tries if not all(gives_up(handler.body) for handler in node.handlers))
    return any(isinstance(inner, ast.Yield) for block in guarded for part in block.body for inner in ast.walk(part))
