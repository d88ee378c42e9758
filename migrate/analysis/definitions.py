"""Running `def` and `class`: what they bind, and what their decorators are given."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis import calls
from migrate.analysis.arguments import Arguments
from migrate.analysis.decorators import decorated
from migrate.analysis.entry import function
from migrate.analysis.expressions import defaults, evaluate
from migrate.analysis.members import class_of, give_name, setter_of
from migrate.analysis.records import FIELDS
from migrate.analysis.roles import NOTHING, Role, Value, Values
from migrate.analysis.state import Frame, State
from migrate.analysis.syntax import DEFINITIONS, blocks
from migrate.analysis.units import Class, Function, module_of
from migrate.analysis.unpacking import unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


# --- functions ------------------------------------------------------------------------------------------------------


def define_function(state: State, statement: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
    """`def f(...)`: in a function or module."""
    give_name(state, statement.name, _function(state, statement, frame), frame)


def _function(
    state: State, statement: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame, owner: Class | None = None
) -> Values:
    unit = function(state, statement, frame, owner)
    defaults(state, unit, frame)
    made = frozenset({Value(Role.FUNCTION, statement, statement.name, unit)})
    return decorated(state, made, statement.decorator_list, frame)


# --- classes --------------------------------------------------------------------------------------------------------


def define_class(state: State, statement: ast.ClassDef, frame: Frame) -> None:
    """`class C(...)`: in a function or module."""
    give_name(state, statement.name, _class(state, statement, frame), frame)


def _class(state: State, statement: ast.ClassDef, frame: Frame) -> Values:
    cls = state.classes.get(statement)
    if cls is None:
        cls = state.classes[statement] = Class(statement, module_of(frame.unit))
    state.derive(cls, tuple(evaluate(state, base, frame) for base in statement.bases))
    for keyword in statement.keywords:
        evaluate(state, keyword.value, frame)
    _body(state, cls, statement.body, replace(frame, names=dict(frame.names)))
    value = class_of(cls)
    _tell_bases(state, cls, value)
    return decorated(state, frozenset({value}), statement.decorator_list, frame)


def _tell_bases(state: State, cls: Class, value: Value) -> None:
    """`__init_subclass__` of a base is given the class."""
    for member in state.member(cls, "__init_subclass__", after=cls):
        if isinstance(member.unit, Function) and member.unit.positional:
            state.join_parameter(member.unit, member.unit.positional[0].arg, frozenset({value}))
            state.enter(member.unit)
            state.agenda.demand(member.unit)


def _body(state: State, cls: Class, body: Iterable[ast.stmt], frame: Frame) -> None:
    """The statements of a class, also those under `if` or `try`: what they bind belongs to the class."""
    for statement in body:
        outer, frame.statement = frame.statement, statement
        if isinstance(statement, _FUNCTIONS):
            _member(state, cls, _kept_as(statement), _function(state, statement, frame, cls), frame)
        elif isinstance(statement, ast.ClassDef):
            _member(state, cls, statement.name, _class(state, statement, frame), frame)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            _field(state, cls, statement, frame)
        elif isinstance(statement, ast.Expr):
            evaluate(state, statement.value, frame)
        for inner in blocks(statement) if not isinstance(statement, DEFINITIONS) else ():
            _body(state, cls, inner, frame)
        frame.statement = outer


def _kept_as(statement: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The name of a method in its class; a setter does not take the place of what reads the property."""
    kinds = {d.attr for d in statement.decorator_list if isinstance(d, ast.Attribute)}
    if "setter" in kinds:
        return setter_of(statement.name)
    return f"del {statement.name}" if "deleter" in kinds else statement.name


def _member(state: State, cls: Class, name: str, values: Values, frame: Frame) -> None:
    frame.names[name] = values
    state.name(cls, name, values)


def _field(state: State, cls: Class, statement: ast.Assign | ast.AnnAssign, frame: Frame) -> None:
    if statement.value is None:
        return
    values = evaluate(state, statement.value, frame)
    if isinstance(statement.value, ast.Call) and statement.value.keywords:
        values |= _made(state, statement.value, frame)
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        unpack(state, target, values, frame)
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                state.name(cls, node.id, frame.names.get(node.id, NOTHING))


def _made(state: State, node: ast.Call, frame: Frame) -> Values:
    """`field(default_factory=...)`: what the attribute is where nothing is passed for it."""
    if not any(value.name in FIELDS for value in state.values.get(node.func, NOTHING)):
        return NOTHING
    makers = [state.values.get(k.value, NOTHING) for k in node.keywords if k.arg in ("default_factory", "factory")]
    return calls.call(state, NOTHING.union(*makers), Arguments(node), frame) if makers else NOTHING
