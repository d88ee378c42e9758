"""Functions that make objects: each of their calls gives objects of its own.

Run once for all its callers, `make_loader(train)` would give one loader to `train_loader = make_loader(True)` and to
`test_loader = make_loader(False)`. So such a function is run for every further call as a copy, with parameters, results
and objects of its own. An object that a copy makes is told by a twin of the call in the source that makes it.
"""

from __future__ import annotations

import ast
import copy
from typing import TypeVar, cast

from migrate.analysis.hooks import calls_by_name
from migrate.analysis.known import training
from migrate.analysis.roles import Role, Value
from migrate.analysis.state import MAPPING, Frame, Round, State
from migrate.analysis.syntax import FUNCTIONS, own_nodes, reads, writes
from migrate.analysis.units import Class, Function, Unit
from migrate.analysis.unpacking import inside
from migrate.analysis.widening import join

_Node = TypeVar("_Node", bound=ast.expr)

#: What is told apart by the call that it comes from.
APART = frozenset({Role.MODEL, Role.OPTIMIZER, Role.SCHEDULER, Role.LOADER, Role.DATASET, Role.SAMPLER})
_LONGEST = 120  # lines; what is longer is a program of its own
#: Lines of copies of one function. Of a folder of scripts that share it, each has one or two, and a few dozen of such
#: scripts are many; a framework's tests call its set-up by hundreds, each of which runs again when one learns more.
_MOST = 4000
_MOST_COPIES = 96
_DEEPEST = 3  # copies inside copies; factories that call factories
#: What is run once for all callers: loops, and functions that outlive the call.
_NOT_HERE = (ast.For, ast.AsyncFor, ast.While, ast.Yield, ast.YieldFrom, ast.ClassDef, *FUNCTIONS)


def copy_for(state: State, unit: Function, site: ast.Call, caller: Unit) -> Function:
    """The copy of a factory for one call; the function itself if it is none, or for the first of its calls.

    `site` is the call, or what stands for it in one round of a loop.
    """
    # The layers of models are one: each has many, and nobody asks for one alone. Other callers have what is theirs.
    by_name = calls_by_name(unit)
    is_of_layers = isinstance(caller, Function) and caller.builds_model and not by_name
    outer = caller if isinstance(caller, Function) and caller.of is not None and not is_of_layers else None
    first = (None if is_of_layers else site, outer)
    if unit.first is None:
        unit.first = first
    if unit.first == first or not (by_name or _is_maker(state, unit)):
        return unit
    key = (unit.node, *first)
    if key not in state.copies and (_is_full(unit) or _depth(outer) >= _DEEPEST or _is_inside(unit, caller)):
        unit.is_mixed = by_name
        return unit
    if key not in state.copies:
        state.copies[key] = _copied(state, unit, outer)
        state.copies[key].first = first
    return state.copies[key]


def _is_full(unit: Function) -> bool:
    lines = (unit.node.end_lineno or unit.node.lineno) - unit.node.lineno + 1
    return unit.copies >= _MOST_COPIES or unit.copies * lines >= _MOST


def _copied(state: State, unit: Function, outer: Function | None) -> Function:
    made = Function(unit.node, unit.module, unit.owner, unit.parent)
    made.of, made.outer = unit, outer
    made.rest, made.others = (arg and _like(state, arg) for arg in (unit.rest, unit.others))
    for name, values in unit.defaults.items():
        state.join_parameter(made, name, values)
    hold_rest(state, made)
    unit.copies += 1
    return made


def _like(state: State, holder: ast.arg) -> ast.arg:
    """What holds the further arguments of a copy: it stands where that of the function does."""
    made = ast.copy_location(ast.arg(holder.arg), holder)
    state.originals[made] = state.originals.get(holder, holder)
    return made


def _depth(unit: Function | None) -> int:
    return 0 if unit is None else 1 + _depth(unit.outer)


def _is_inside(unit: Function, caller: Unit) -> bool:
    """Whether a function calls itself, directly or through others."""
    while isinstance(caller, Function):
        if caller.original is unit:
            return True
        if caller.outer is None:
            return False
        caller = caller.outer
    return False


def twin(state: State, node: _Node, frame: Frame) -> _Node:
    """What stands for the objects made by an expression: itself, or in a copy or a round another node like it."""
    if frame.round is not None:
        return _twin(state, node, frame.round)
    unit = frame.unit
    return _twin(state, node, unit) if isinstance(unit, Function) and unit.of is not None else node


def twin_of_class(state: State, site: _Node, cls: Class) -> _Node:
    """What stands for the objects that a call makes of one class, where it makes others of other classes."""
    return site if state.first_classes.setdefault(site, cls) is cls else _twin(state, site, cls)


def _twin(state: State, node: _Node, kept_apart_by: Unit | Class | Round) -> _Node:
    key = (node, kept_apart_by)
    if key not in state.twins:
        state.twins[key] = copy.copy(node)
        state.originals[state.twins[key]] = state.originals.get(node, node)
    return cast("_Node", state.twins[key])


def merge(state: State) -> None:
    """Say of each factory what its copies have learnt of its parameters."""
    for made in state.copies.values():
        for name, values in made.parameters.items():
            assert made.of is not None
            join(made.of.parameters, name, values)


def hold_rest(state: State, unit: Function) -> None:
    """Give `*args` and `**kwargs` a tuple and a dictionary."""
    if unit.rest is not None:
        state.join_parameter(unit, unit.rest.arg, frozenset({Value(Role.CONTAINER, unit.rest)}))
    if unit.others is not None:
        state.join_parameter(unit, unit.others.arg, frozenset({Value(Role.CONTAINER, unit.others, MAPPING)}))


def _is_maker(state: State, unit: Function) -> bool:
    """Whether what a function gives was made by it, or by what it calls."""
    if unit.is_maker is None and any(_is_made_by(state, value, unit) for value in inside(state, unit.returns, depth=1)):
        unit.is_maker = _can_be_copied(state, unit)
    return bool(unit.is_maker)


def _can_be_copied(state: State, unit: Function) -> bool:
    node = unit.node
    if isinstance(node, ast.Lambda) or (node.end_lineno or node.lineno) - node.lineno > _LONGEST:
        return isinstance(node, ast.Lambda)
    if node.decorator_list and not all(isinstance(d, ast.Name) and d.id in _PLAIN for d in node.decorator_list):
        return False  # it may keep what it has made
    own = [inner for statement in node.body for inner in (statement, *own_nodes(statement))]
    by_key = {loop for loop, _, _ in state.rounds}
    return all(
        inner in by_key or _is_plain_loop(state, inner) or _is_apart(inner, node)
        for inner in own
        if isinstance(inner, _NOT_HERE)
    )


def _is_apart(inner: ast.AST, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A function that makes nothing, and reads nothing that the one around it makes.

    `collate_fn=lambda rows: pad(rows, args.longest)`, or the rule of a LambdaLR.
    """
    if not isinstance(inner, ast.Lambda) and not (isinstance(inner, ast.FunctionDef) and _only_computes(inner)):
        return False
    own = {parameter.arg for parameter in ast.walk(inner.args) if isinstance(parameter, ast.arg)}
    own |= writes(inner) if isinstance(inner, ast.FunctionDef) else set()
    return not (reads(inner) - own) & set().union(*(writes(statement) for statement in function.body))


def _only_computes(function: ast.FunctionDef) -> bool:
    """Whether a function gives numbers, or nothing at all: it would give all callers the same object."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)) for node in nodes):
        return False
    gives = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return not gives or all(ast.unparse(func).removeprefix("math.") in _NUMBERS for func in called)


def _is_plain_loop(state: State, node: ast.AST) -> bool:
    """One that is run for one object like for another: `for p in model.parameters():`, `for width in widths:`.

    It trains nothing, and goes over no loader: of that each caller may have another.
    """
    match node:
        case ast.For(iter=ast.Call(func=ast.Attribute(attr=name))) if name in training.PARTS:
            return True
        case ast.For(iter=over):
            parts = (each for each in ast.walk(over) if isinstance(each, ast.expr))
            inside = frozenset(value for each in parts for value in state.values.get(each, ()))
            is_dealt = any(value.role is Role.BATCH for value in inside) or bool(state.loaders(inside))
            return not is_dealt and not any(isinstance(n, ast.Attribute) and n.attr in _TRAINS for n in own_nodes(node))
    return False


_PLAIN = frozenset({"staticmethod", "classmethod"})
_TRAINS = frozenset({"backward", "step"})
_NUMBERS = frozenset("abs bool ceil cos exp float floor int len log max min pow round sin sqrt sum".split())


def _is_made_by(state: State, value: Value, unit: Function) -> bool:
    """Whether the value was made in the function, or in one that it calls."""
    origin = state.originals.get(value.origin, value.origin)  # type: ignore[arg-type]
    home = state.calls.get(origin) if isinstance(origin, ast.Call) and value.role in APART else None
    waiting, seen = [home], 0
    while waiting:
        here, seen = waiting.pop(), seen + 1
        if here is unit:
            return True
        if isinstance(here, Function) and seen <= _DEEPEST:
            waiting.extend(call.caller for call in here.calls.values())
    return False
