"""What a function or class is after its decorators."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from migrate.analysis.arguments import Arguments
from migrate.analysis.entry import enter
from migrate.analysis.expressions import evaluate
from migrate.analysis.handing import dotted, entries, passing
from migrate.analysis.roles import Role, Value, Values
from migrate.analysis.syntax import is_stored, own_nodes, writes
from migrate.analysis.units import Function, Handed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.known.table import Enters
    from migrate.analysis.state import Frame, State


def decorated(state: State, made: Values, decorators: Sequence[ast.expr], frame: Frame) -> Values:
    """What stands under the name; decorators of libraries, and those that only call what they get, keep it."""
    for decorator in reversed(decorators):
        values = evaluate(state, decorator, frame)
        for name, row in entries(state, decorator).items():
            _entered(state, name, row, decorator, made, frame)
        for value in values:
            if value.role in (Role.FUNCTION, Role.METHOD) and isinstance(value.unit, Function):
                made = _through(state, value, value.unit, made)
    return made


def _entered(state: State, name: str, row: Enters, decorator: ast.expr, made: Values, frame: Frame) -> None:
    """Let a library call what it has decorated: `@hydra.main(...)` before `def main(cfg)`."""
    node = decorator if isinstance(decorator, ast.Call) else ast.copy_location(ast.Call(decorator, [], []), decorator)
    inner = passing(state, row.passes, Arguments(node))
    inner.handed = Handed(name, None, (None,) * len(row.passes))
    for value in made:
        if isinstance(value.unit, Function) and isinstance(decorator, ast.Call):
            enter(state, value, inner, frame)
        elif isinstance(value.unit, Function):  # no call stands there
            for parameter, values in zip(value.unit.positional, inner.positional, strict=False):
                state.join_parameter(value.unit, parameter.arg, values)
            state.enter(value.unit)
        if isinstance(value.unit, Function) and row.options:
            _told(state, row.options, value.unit, node, frame)


def _told(state: State, options: tuple[str, ...], unit: Function, command: ast.Call, frame: Frame) -> None:
    """Give a command what its options say: `@click.option("--device")` is to `device` what `args.device` is."""
    said = Value(Role.HOLDER, command)
    named: set[str] = set()
    for decorator in getattr(unit.node, "decorator_list", ()):
        values = evaluate(state, decorator.func, frame) if isinstance(decorator, ast.Call) else frozenset()
        if isinstance(decorator, ast.Call) and any(dotted(value) in options for value in values):
            texts = [each.value for each in decorator.args if isinstance(each, ast.Constant)]
            named |= {text.lstrip("-").replace("-", "_") for text in texts if isinstance(text, str)}
    for parameter in unit.positional:
        if parameter.arg in named:
            value = Value(Role.METHOD, command, parameter.arg, None, said)
            state.join_parameter(unit, parameter.arg, frozenset({value}))


def _through(state: State, decorator: Value, unit: Function, made: Values) -> Values:
    positional = unit.positional
    if decorator.receiver is not None and positional:
        state.join_parameter(unit, positional[0].arg, frozenset({decorator.receiver}))
        positional = positional[1:]
    if not positional:
        return made
    parameter = positional[0].arg
    if only_calls(unit, parameter):
        # Not joined: the wrapper hands its arguments on, so the callers are taken to call the function itself.
        return made
    state.join_parameter(unit, parameter, made)
    state.enter(unit)
    returned = state.result(unit)
    return made if gives_back(unit, parameter) else returned or made


@lru_cache(maxsize=1024)
def gives_back(unit: Function, parameter: str) -> bool:
    """Whether a decorator gives back what it gets."""
    returned = [node.value for node in own_nodes(unit.node) if isinstance(node, ast.Return)]
    is_rebound = any(parameter in writes(statement) for statement in unit.body)
    return bool(returned) and not is_rebound and all(_is(value, parameter) for value in returned)


@lru_cache(maxsize=1024)
def only_calls(unit: Function, parameter: str) -> bool:
    """Whether a decorator gives back a function that hands its arguments on and gives back what that call gives."""
    inner = [node for node in own_nodes(unit.node) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    returned = [node.value for node in own_nodes(unit.node) if isinstance(node, ast.Return)]
    if len(inner) != 1 or not returned:
        return False
    for value in returned:
        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} if value is not None else set()
        if inner[0].name not in names:  # `return wrapper`, `return wraps(function)(wrapper)`
            return False
    calls = [node for node in ast.walk(inner[0]) if isinstance(node, ast.Call) and _is(node.func, parameter)]
    if not calls or not all(_hands_on(inner[0], call) for call in calls):
        return False
    given = {id(call) for call in calls}
    own = list(own_nodes(inner[0]))
    targets = [t for node in own if isinstance(node, ast.Assign) and id(node.value) in given for t in node.targets]
    others = {n.id for n in own if isinstance(n, ast.Name) and is_stored(n) and n not in targets}
    kept = {target.id for target in targets if isinstance(target, ast.Name)} - others
    results = [node.value for node in own if isinstance(node, ast.Return) and node.value is not None]
    return all(id(value) in given or (isinstance(value, ast.Name) and value.id in kept) for value in results)


def _is(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _hands_on(wrapper: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call) -> bool:
    """Whether a call passes everything on that the wrapper gets, and nothing else."""
    signature = wrapper.args
    if signature.kwonlyargs or signature.posonlyargs:
        return False
    passed = [a.value if isinstance(a, ast.Starred) else a for a in call.args] + [k.value for k in call.keywords]
    expected = [*signature.args, *(rest for rest in (signature.vararg, signature.kwarg) if rest is not None)]
    return len(passed) == len(expected) and all(
        _is(node, parameter.arg) for node, parameter in zip(passed, expected, strict=True)
    )


def is_transparent(decorator: Value) -> bool:
    """Whether a decorator of the project gives what it gets, or what hands everything on to it."""
    unit = decorator.unit
    if not isinstance(unit, Function):
        return False
    parameters = unit.positional[int(decorator.role is Role.METHOD) :]
    return bool(parameters) and (only_calls(unit, parameters[0].arg) or gives_back(unit, parameters[0].arg))
