"""Functions that call methods by a name which they are given: `for each in self.callbacks: getattr(each, hook)(self)`.

Run once for all its callers, each call of such a function would enter the methods of all names. So it is run for every
call as a copy, and a method that it enters by the name counts as called by that call: `self.run("after_epoch")`.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from migrate.analysis.known import callers
from migrate.analysis.roles import Role, Value
from migrate.analysis.syntax import LOOPS, own_nodes
from migrate.analysis.units import Call, Function, FunctionNode, Handed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.arguments import Arguments
    from migrate.analysis.state import Frame, State
    from migrate.analysis.units import Unit

_DEEPEST = 4  # functions that hand a name on to the one that calls by it
_LONGEST = 30  # lines
_TRAINS = frozenset({"backward", "step"})


def calls_by_name(unit: Function) -> bool:
    """Whether a function calls by a name that it is given, or hands it on to one that does."""
    return bool(unit.hands_names or _by_name(unit.node))


def hand_on(unit: Function, caller: Unit, node: ast.Call, *, is_bound: bool) -> None:
    """Keep in mind which of its parameters a caller hands on to a function that calls by that name."""
    if not isinstance(caller, Function) or not calls_by_name(unit) or not _only_calls(caller.node):
        return
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    given = zip((parameter.arg for parameter in unit.positional[int(is_bound) :]), node.args, strict=False)
    wanted = unit.hands_names | _names_asked(unit.node)
    for parameter, argument in (*given, *named.items()):
        if parameter in wanted and isinstance(argument, ast.Name) and argument.id in _fixed(caller.node):
            caller.original.hands_names.add(argument.id)


def call_of(state: State, callee: Value, arguments: Arguments, frame: Frame) -> Call:
    """The call by which a function is entered: where its name is given, if that is how it is called."""
    node, unit, is_bound = arguments.node, frame.unit, callee.role is Role.METHOD
    if arguments.handed is None and isinstance(unit, Function) and node in _by_name(unit.node):
        place = _above(state, unit, _DEEPEST)
        if place is not None:
            handed = Handed(callers.BY_NAME, None, tuple(node.args), tuple(node.keywords), _by_name(unit.node)[node])
            return Call(place[0], place[1], is_bound, handed)
    return Call(node, unit.original, is_bound, arguments.handed)


def merge(state: State) -> None:
    """Say of functions that were not run apart for each call that they call all that has one of the names."""
    for unit in [unit for unit in state.functions.values() if unit.is_mixed]:
        for node in _by_name(unit.node):
            for value in state.values.get(node.func, ()):
                if isinstance(value.unit, Function):
                    made = Call(node, unit, value.role is Role.METHOD)
                    value.unit.calls.setdefault(node, made)


def _above(state: State, unit: Function, depth: int) -> tuple[ast.Call, Unit] | None:
    """The call that gives the name, and where it stands."""
    site, outer = unit.first if unit.first is not None else (None, None)
    if site is None:
        return None
    node = state.originals.get(site, site)
    if not isinstance(node, ast.Call) or (caller := outer or state.calls.get(node)) is None:
        return None
    if isinstance(caller, Function) and caller.original.hands_names and depth:
        return _above(state, caller, depth - 1) or (node, caller.original)
    return node, caller.original


@lru_cache(maxsize=1024)
def _by_name(function: FunctionNode) -> dict[ast.Call, bool]:
    """The calls by a name that a function is given; and whether one may be made several times for one object."""
    asked = [node for node in own_nodes(function).of(ast.Call) if _asks(node, function)]
    name = "" if isinstance(function, ast.Lambda) else function.name
    if not asked or not _only_calls(function) or (name[:2] == "__" and name != "__call__"):  # those Python calls itself
        return {}
    names = dict(_named(function, asked))
    found = {}
    for node in own_nodes(function).of(ast.Call):
        getting = node.func if node.func in asked else names.get(getattr(node.func, "id", ""))
        if isinstance(getting, ast.Call):
            found[node] = not _is_once(function, getting)
    return found


@lru_cache(maxsize=1024)
def _only_calls(function: FunctionNode) -> bool:
    """Whether a function is short, and trains nothing itself: a training is run once for all who begin it."""
    length = (function.end_lineno or function.lineno) - function.lineno
    return length <= _LONGEST and not any(n.attr in _TRAINS for n in own_nodes(function).of(ast.Attribute))


def _asks(node: ast.Call, function: FunctionNode) -> bool:
    """`getattr(each, hook)`, of a parameter that stays what it is."""
    match node:
        case ast.Call(func=ast.Name("getattr"), args=[_, ast.Name(name), *_], keywords=[]):
            return name in _fixed(function)
    return False


@lru_cache(maxsize=1024)
def _names_asked(function: FunctionNode) -> frozenset[str]:
    """The parameters by which a function asks for a method."""
    asked = (node.args[1] for node in own_nodes(function).of(ast.Call) if _asks(node, function))
    return frozenset(name.id for name in asked if isinstance(name, ast.Name))


@lru_cache(maxsize=1024)
def _fixed(function: FunctionNode) -> frozenset[str]:
    """The parameters of a function that it gives no other value."""
    given = function.args
    names = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    stored = (node.id for node in own_nodes(function).of(ast.Name) if not isinstance(node.ctx, ast.Load))
    return frozenset(names.difference(stored))


def _named(function: FunctionNode, asked: list[ast.Call]) -> Iterator[tuple[str, ast.Call]]:
    """The names that are given a method by its name, and nothing else."""
    stored = [node.id for node in own_nodes(function).of(ast.Name) if not isinstance(node.ctx, ast.Load)]
    for node in own_nodes(function):
        match node:
            case (
                ast.Assign(targets=[ast.Name(name)], value=ast.Call() as value)
                | ast.NamedExpr(target=ast.Name(name), value=ast.Call() as value)
            ) if value in asked and stored.count(name) == 1:
                yield name, value


def _is_once(function: FunctionNode, getting: ast.Call) -> bool:
    """Whether a method is called once for each object: in no loop, or in one over the objects."""
    loops = [node for node in own_nodes(function) if isinstance(node, (*LOOPS, ast.comprehension))]
    targets = [node.target for node in loops if isinstance(node, (ast.For, ast.comprehension))]
    return not loops or (len(loops) == 1 and [*map(ast.unparse, targets)] == [ast.unparse(getting.args[0])])
