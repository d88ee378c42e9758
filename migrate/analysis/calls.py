"""What a call gives, over everything that it may call."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis import records
from migrate.analysis.arguments import Arguments, tensor, unknown
from migrate.analysis.entry import enter, hand, invoke
from migrate.analysis.factories import twin_of_class
from migrate.analysis.handing import hand_over, rows_of, waited_for
from migrate.analysis.iteration import iterate, iterator
from migrate.analysis.libraries import library
from migrate.analysis.members import class_of, reads_settings
from migrate.analysis.methods import method
from migrate.analysis.roles import NOTHING, ROWS, Role, Value, Values, computed, of_role
from migrate.analysis.state import ELEMENT, MAPPING, OVER, Frame, State
from migrate.analysis.units import Class, Function, Handed
from migrate.analysis.unpacking import inside
from migrate.analysis.widening import bounded, in_order

if TYPE_CHECKING:
    from collections.abc import Callable


def call(state: State, callees: Values, arguments: Arguments, frame: Frame) -> Values:
    """The values of a call, over everything that may be called."""
    if not callees:
        is_needed = not (isinstance(frame.statement, ast.Expr) and frame.statement.value is arguments.node)
        return unknown(arguments.node, arguments) if is_needed and state.settled else NOTHING
    found = NOTHING
    for callee in in_order(bounded(callees)):
        given = _one(state, callee, arguments, frame)
        found = found | given if found else given
    return found


def _one(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values:
    if callee.role is Role.KNOWN:
        calling = _CALLING.get(callee.name)
        if calling is not None:
            return calling(state, arguments, frame)
        rows = state.known.calls.get(callee.name)
        given = hand_over(state, rows, callee, arguments, frame, call) if rows is not None else None
        return library(state, callee.name, arguments, frame) if given is None else given
    if callee.role is Role.PARTIAL:
        return _call_partial(state, callee, arguments, frame)
    if isinstance(callee.unit, Function):
        return enter(state, callee, arguments, frame)
    if callee.role is Role.CLASS:
        if isinstance(callee.unit, Class):
            return _instantiate(state, callee.unit, arguments, frame)
        return _tuple(state, records.declared(callee.origin), arguments)
    if callee.role is Role.METHOD and callee.receiver is not None:
        return _of_library(state, callee, callee.receiver, arguments, frame)
    if callee.role in (Role.MODEL, Role.CRITERION, Role.INSTANCE):
        return _called(state, callee, arguments, frame)
    return unknown(arguments.node, arguments)


def _of_library(state: State, callee: Value, receiver: Value, arguments: Arguments, frame: Frame) -> Values:
    """A method that the project does not define."""
    if receiver.role is Role.CLASS and isinstance(receiver.unit, Class):
        return _pretrained(state, receiver.unit, arguments, frame)
    if receiver.role is Role.OPTIMIZER:
        _call_closures(state, callee.name, arguments, frame)
    elif (given := _of_calling_method(state, callee, arguments, frame)) is not None:
        return given
    return method(state, receiver, callee.name, arguments)


def _call_closures(state: State, name: str, arguments: Arguments, frame: Frame) -> None:
    """`optimizer.step(closure)` calls the closure."""
    for value in arguments.all():
        if isinstance(value.unit, Function):
            call(state, frozenset({value}), _by(Arguments(arguments.node), f".{name}"), frame)


def _of_calling_method(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values | None:
    """A method of a library's object that may call what it is handed, or give what that gave."""
    if (given := waited_for(state, callee)) is not None:
        return given
    rows = rows_of(state, callee)
    return hand_over(state, rows, callee, arguments, frame, call) if rows else None


# --- library functions that call what they are given ------------------------------------------------------------------


def _by(arguments: Arguments, name: str) -> Arguments:
    """The arguments of a call that the library function `name` makes of what it is handed; none of them is written."""
    node = arguments.node
    arguments.handed = Handed(
        name, node.args[0] if node.args else None, (None,) * len(arguments.positional), often=True
    )
    return arguments


def _map(state: State, arguments: Arguments, frame: Frame) -> Values:
    given = [iterate(state, values) for values in arguments.positional[1:]]
    inner = _by(Arguments(arguments.node, given, {}, arguments.rest), "builtins.map")
    results = call(state, arguments.at(0, "func"), inner, frame)
    over = arguments.after(1).all()
    return iterator(state, arguments.node, results, over) | of_role(results, *ROWS)


def _filter(state: State, arguments: Arguments, frame: Frame) -> Values:
    over = arguments.at(1, "iterable")
    elements = iterate(state, over)
    for value in arguments.at(0, "function"):
        if isinstance(value.unit, Function):
            inner = _by(Arguments(arguments.node, [elements]), "builtins.filter")
            call(state, frozenset({value}), inner, frame)
    return iterator(state, arguments.node, elements, over) | of_role(elements, *ROWS)


def _default_dict(state: State, arguments: Arguments, frame: Frame) -> Values:
    """A dictionary that holds what its factory makes."""
    inner = _by(Arguments(arguments.node), "collections.defaultdict")
    made = call(state, arguments.at(0, ""), inner, frame)
    # What is made here, a list or an object with its attributes, is not the dictionary: that is at the function.
    assert isinstance(arguments.node, ast.Call)
    state.store(arguments.node.func, ELEMENT, made)
    return frozenset({Value(Role.CONTAINER, arguments.node.func, MAPPING)})


def _partial(state: State, arguments: Arguments, frame: Frame) -> Values:
    """A function with its first arguments; they are kept at the call that bound them."""
    node, bound = arguments.node, arguments.after(1)
    for position, values in enumerate(bound.positional):
        state.store(node, str(position), values)
    for name, values in bound.named.items():
        state.store(node, name, values)
    state.store(node, ELEMENT, bound.rest | bound.others)
    return frozenset(_bound_at(node, value) for value in bounded(arguments.at(0, "func")))


def _bound_at(node: ast.Call, value: Value) -> Value:
    """A value with arguments that a call binds; one that it has bound before is that one: there they are kept."""
    inner: Value | None = value
    while inner is not None and inner.role is Role.PARTIAL:
        if inner.origin is node:
            return inner
        inner = inner.receiver
    return Value(Role.PARTIAL, node, value.name, value.unit, value)


def _call_partial(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values:
    assert callee.receiver is not None
    assert isinstance(callee.origin, ast.Call)
    held = state.held(callee.origin)
    count = sum(not isinstance(argument, ast.Starred) for argument in callee.origin.args[1:])
    count = max([count, *(int(key) + 1 for key in held if key.isdigit())])  # and what a list of known length gave
    positional = [held.get(str(position), NOTHING) for position in range(count)]
    named = {name: values for name, values in held.items() if not name.isdigit() and name[:1] not in "*<"}
    bound = Arguments(arguments.node, positional, named, held.get(ELEMENT, NOTHING))
    passed = arguments.behind(bound)
    passed.handed = _behind(callee.origin, arguments)
    return call(state, frozenset({callee.receiver}), passed, frame)


def _behind(partial: ast.Call, arguments: Arguments) -> Handed:
    """What is written of the arguments of a partial function: those that were bound, then those of the call."""
    node, handed = arguments.node, arguments.handed
    args = node.args if handed is None else handed.args
    keywords = node.keywords if handed is None else handed.keywords
    named = {keyword.arg for keyword in keywords}
    bound = [keyword for keyword in partial.keywords if keyword.arg is None or keyword.arg not in named]
    by, often = (handed.by, handed.often) if handed is not None else ("functools.partial", False)
    # Where the function is bound is not where it is handed over: the partial function may be kept.
    return Handed(by, None, (*partial.args[1:], *args), (*bound, *keywords), often)


def _replace(state: State, arguments: Arguments, frame: Frame) -> Values:
    """`dataclasses.replace(old, rate=0.1)`: another object of its class, made of the fields of the old one."""
    found: Values = NOTHING
    for value in in_order(bounded(arguments.at(0, "obj"))):
        if not isinstance(value.unit, Class) or value.origin is None or value.role is Role.CLASS:
            continue
        kept = {name: state.load(value.origin, name) for name in records.fields_of(state, value.unit) or ()}
        passed = Arguments(arguments.node, [], {**kept, **arguments.named}, NOTHING, arguments.others)
        passed.site = arguments.site
        found |= _instantiate(state, value.unit, passed, frame)
    return found or unknown(arguments.node, arguments)


_CALLING: dict[str, Callable[[State, Arguments, Frame], Values]] = {
    "builtins.map": _map,
    "builtins.filter": _filter,
    "collections.defaultdict": _default_dict,
    "copy.replace": _replace,
    "dataclasses.replace": _replace,
    "functools.partial": _partial,
}


# --- classes and objects of the project -------------------------------------------------------------------------------


#: The argument that says what an object works on, where its class derives from a library's.
_OVER = {
    Role.OPTIMIZER: (0, "params"),
    Role.SCHEDULER: (0, "optimizer"),
    Role.LOADER: (0, "dataset"),
}


def _instantiate(state: State, cls: Class, arguments: Arguments, frame: Frame) -> Values:
    init = state.member(cls, "__init__")
    if cls.is_open and not state.settled:
        return NOTHING  # what it is for depends on a base that is not known yet
    # `KINDS[name](args)`: trainers of several classes hold what is theirs; a model is one, whichever class it is of.
    is_own = role_of(state, cls) is Role.INSTANCE
    node = twin_of_class(state, arguments.site, cls) if is_own else arguments.site
    made = instance(state, cls, node, frame)
    others = _by_new(state, cls, arguments, frame)
    for member in init:
        if isinstance(member.unit, Function):
            enter(state, Value(Role.METHOD, unit=member.unit, receiver=made), arguments, frame)
    if not init and (fields := records.fields_of(state, cls)) is not None:
        records.construct(state, fields, arguments, ordered=made.role is Role.CONTAINER)
        _set_up(state, made, cls, arguments, frame)
    if made.role in _OVER:
        state.store(node, OVER, arguments.at(*_OVER[made.role]))
    return others | {made}


def _set_up(state: State, made: Value, cls: Class, arguments: Arguments, frame: Frame) -> None:
    """Enter the `__post_init__` of a class that is made of fields: the constructor calls it that nobody has written."""
    given = records.initial(state, cls, arguments)
    inner = Arguments(arguments.node, [values for values, _ in given])
    inner.site, inner.handed = arguments.site, Handed("dataclasses.dataclass", None, tuple(node for _, node in given))
    for each in cls.mro():
        for member in each.names.get("__post_init__", ()):
            if isinstance(member.unit, Function):
                member.unit.is_after_fields = True
    for member in state.member(cls, "__post_init__"):
        if isinstance(member.unit, Function):
            enter(state, Value(Role.METHOD, unit=member.unit, receiver=made), inner, frame)


def _by_new(state: State, cls: Class, arguments: Arguments, frame: Frame) -> Values:
    """What else than an object of its own the `__new__` of a class may give."""
    found: Values = NOTHING
    for member in state.member(cls, "__new__"):
        if isinstance(member.unit, Function):
            receiver = class_of(cls)
            given = enter(state, Value(Role.METHOD, unit=member.unit, receiver=receiver), arguments, frame)
            found |= frozenset(value for value in given if value.role is not Role.UNKNOWN)
    return found


def _pretrained(state: State, cls: Class, arguments: Arguments, frame: Frame) -> Values:
    """`Net.from_pretrained(name)` of the library that a class derives from makes a model, with what that passes; of a
    class that a decorator makes of its fields, `Args.from_args()` gives the user's settings.
    """
    if cls.is_open and not state.settled:
        return NOTHING
    role = role_of(state, cls)
    if role is Role.INSTANCE and reads_settings(cls):
        return frozenset({Value(Role.HOLDER, arguments.node)})
    if role is not Role.MODEL:
        return unknown(arguments.node, arguments)
    made = instance(state, cls, arguments.site, frame)
    invoke(state, made, "__init__")
    return frozenset({made})


def instance(state: State, cls: Class, origin: ast.AST, frame: Frame) -> Value:
    """An object of a project class, with the role of the library class that it derives from."""
    made = Value(role_of(state, cls), origin, cls.node.name, cls)
    for known_class in cls.mro():
        known_class.instances |= {made}
    return made


#: Roles that a project class takes over from the library class it derives from.
_INHERITED = tuple(Role[name] for name in "MODEL DATASET OPTIMIZER SCHEDULER SAMPLER LOADER CRITERION WRITER".split())


def role_of(state: State, cls: Class) -> Role:
    """What objects of a project class are for."""
    if records.is_tuple(cls):
        return Role.CONTAINER
    found = {state.known.role_of_base(name) for name in cls.library_bases()}
    return next((role for role in _INHERITED if role in found), Role.INSTANCE)


def _tuple(state: State, fields: list[str], arguments: Arguments) -> Values:
    """What a class that `namedtuple` made gives."""
    records.construct(state, fields, arguments, ordered=True)
    return frozenset({Value(Role.CONTAINER, arguments.site)})


def _hands_model(arguments: Arguments) -> bool:
    """Whether a loss is given the model, `criterion(model, x, y)`: what it asks of it must be known."""
    return any(value.role is Role.MODEL for value in arguments.all())


def _called(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Values:
    """Calling an object: a model gives rows for rows, a loss function folds them."""
    if isinstance(callee.unit, Class):
        name = "__call__" if callee.role is Role.INSTANCE else "forward"
        for member in state.member(callee.unit, name):
            if isinstance(member.unit, Function):
                given = Value(Role.METHOD, unit=member.unit, receiver=callee)
                if callee.role is Role.INSTANCE:
                    return enter(state, given, arguments, frame)
                unit, _ = hand(state, given, arguments, frame)
                if unit.matters or _hands_model(arguments):  # what comes out is known without running it
                    state.enter(unit)
    if callee.role is Role.INSTANCE:  # by a base that nobody knows
        return unknown(arguments.node, arguments)
    inputs = arguments.all()
    keeps_rows = callee.role is not Role.CRITERION and any(value.role in ROWS for value in inputs)
    found = computed(inputs, Role.SAMPLES if keeps_rows else Role.STATISTIC)
    if not found:  # `model([x, y])`: what comes out need not have the rows of what lies in there
        found = computed(inside(state, inputs, depth=1), Role.STATISTIC)
    return found or tensor(state, arguments)
