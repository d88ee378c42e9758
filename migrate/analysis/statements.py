"""Running statements: how they change what the names mean."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis import calls, members
from migrate.analysis.expressions import element_of, evaluate, unpack
from migrate.analysis.roles import NOTHING, Role, Value, Values
from migrate.analysis.state import ELEMENT, Frame, State
from migrate.analysis.units import Class, Function, Module, module_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def run(state: State, body: Sequence[ast.stmt], frame: Frame) -> None:
    """Run the statements one after the other; the frame's names are those after the last."""
    for statement in body:
        outer, frame.statement = frame.statement, statement
        kind = _KINDS.get(type(statement))
        if kind is not None:
            kind(state, statement, frame)
        frame.statement = outer


def _branches(state: State, frame: Frame, *bodies: Sequence[ast.stmt]) -> None:
    """Run each body from the same start; afterwards a name is whatever one of them made of it."""
    start = dict(frame.names)
    after: list[dict[str, Values]] = []
    for body in bodies:
        frame.names = dict(start)
        run(state, body, frame)
        after.append(frame.names)
    frame.names = merged(after)


def merged(scopes: Sequence[dict[str, Values]]) -> dict[str, Values]:
    """The union of what each scope says of each name."""
    names: dict[str, Values] = {}
    for scope in scopes:
        for name, values in scope.items():
            names[name] = names[name] | values if name in names else values
    return names


def _assign(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.Assign)
    values = evaluate(state, statement.value, frame)
    for target in statement.targets:
        assign(state, target, values, frame)


def _annotated(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.AnnAssign)
    if statement.value is not None:
        assign(state, statement.target, evaluate(state, statement.value, frame), frame)


def _augmented(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.AugAssign)
    # The old value stays possible: a count that starts at zero and grows by statistics is both.
    values = evaluate(state, _loaded(statement.target), frame) | evaluate(state, statement.value, frame)
    assign(state, statement.target, values, frame)


def _loaded(target: ast.expr) -> ast.expr:
    """The target as it is read; the same node, since values are recorded by node."""
    return target


def assign(state: State, target: ast.expr, values: Values, frame: Frame) -> None:
    """Give a target its values: names are replaced, what objects hold is joined."""
    if isinstance(target, ast.Name):
        if target.id in frame.shared:
            state.name(module_of(frame.unit), target.id, values)
        else:
            frame.names[target.id] = values
            state.name(frame.unit, target.id, values)
        state.record(target, values)
        state.bind(frame, target.id, values)
    elif isinstance(target, ast.Attribute):
        for owner in evaluate(state, target.value, frame):
            _set_attribute(state, owner, target.attr, values)
        state.record(target, values)
        state.bind(frame, ast.unparse(target), values)
    elif isinstance(target, ast.Subscript):
        _set_item(state, target, values, frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for position, element in enumerate(target.elts):
            inner = element.value if isinstance(element, ast.Starred) else element
            assign(state, inner, element_of(state, values, position), frame)


def _set_attribute(state: State, owner: Value, name: str, values: Values) -> None:
    if isinstance(owner.unit, Module) or (owner.role is Role.CLASS and isinstance(owner.unit, Class)):
        state.name(owner.unit, name, values)
    else:
        state.store(owner.origin, name, values)


def _set_item(state: State, target: ast.Subscript, values: Values, frame: Frame) -> None:
    evaluate(state, target.slice, frame)
    key = str(target.slice.value) if isinstance(target.slice, ast.Constant) else ELEMENT
    for owner in evaluate(state, target.value, frame):
        state.store(owner.origin, key, values)


def _expression(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.Expr)
    evaluate(state, statement.value, frame)


def _return(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.Return)
    if statement.value is None:
        return
    values = evaluate(state, statement.value, frame)
    if isinstance(frame.unit, Function):
        state.give(frame.unit, values)


def _if(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.If)
    evaluate(state, statement.test, frame)
    _branches(state, frame, statement.body, statement.orelse)


def _for(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, (ast.For, ast.AsyncFor))
    state.loops[statement] = frame.unit
    source = evaluate(state, statement.iter, frame)

    def once() -> None:
        _target(state, statement.target, state.iterated(source), frame)
        run(state, statement.body, frame)

    _repeat(state, once, frame)
    run(state, statement.orelse, frame)


def _repeat(state: State, once: Callable[[], None], frame: Frame) -> None:
    """Run a loop's body until its end brings nothing new to its start, by a name or in an object.

    A name that the body reads before it gives it a value has, from the second time on, the value of the time before.
    """
    for _ in range(_TIMES):
        before = dict(frame.names)
        surprises = state.agenda.surprises[frame.unit]
        frame.missed.clear()
        once()
        frame.names = merged([before, frame.names])
        if state.agenda.surprises[frame.unit] > surprises or frame.missed & frame.names.keys():
            continue
        if all(frame.names[name] == values for name, values in before.items()):
            return


#: Names that hand a value on in a circle (a = b; b = c; c = ...) take a time each; what is left is seen by the unit's next run.
_TIMES = 4


def _target(state: State, target: ast.expr, values: Values, frame: Frame) -> None:
    """The names of a `for` target, also as closures see them."""
    unpack(state, target, values, frame)
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            state.name(frame.unit, node.id, frame.names.get(node.id, NOTHING))
            state.bind(frame, node.id, frame.names.get(node.id, NOTHING))
        elif isinstance(node, ast.Attribute):
            assign(state, node, values, frame)


def _while(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.While)
    state.loops[statement] = frame.unit

    def once() -> None:
        evaluate(state, statement.test, frame)
        run(state, statement.body, frame)

    _repeat(state, once, frame)
    run(state, statement.orelse, frame)


def _with(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, (ast.With, ast.AsyncWith))
    for item in statement.items:
        values = evaluate(state, item.context_expr, frame)
        if item.optional_vars is not None:
            assign(state, item.optional_vars, values, frame)
    run(state, statement.body, frame)


def _try(state: State, statement: ast.stmt, frame: Frame) -> None:
    before = dict(frame.names)
    run(state, statement.body, frame)  # type: ignore[attr-defined]
    run(state, statement.orelse, frame)  # type: ignore[attr-defined]
    after = [frame.names]
    for handler in statement.handlers:  # type: ignore[attr-defined]
        frame.names = merged([before, after[0]])
        run(state, handler.body, frame)
        after.append(frame.names)
    frame.names = merged(after)
    run(state, statement.finalbody, frame)  # type: ignore[attr-defined]


def _match(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.Match)
    values = evaluate(state, statement.subject, frame)
    for case in statement.cases:
        for node in ast.walk(case.pattern):
            if isinstance(node, ast.MatchAs) and node.name is not None:
                frame.names[node.name] = values
    _branches(state, frame, *(case.body for case in statement.cases), [])


def _test(state: State, statement: ast.stmt, frame: Frame) -> None:
    """assert, raise, del: look at the expressions."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            evaluate(state, child, frame)


def _global(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.Global)
    frame.shared |= frozenset(statement.names)


def _define(state: State, statement: ast.stmt, frame: Frame, owner: Class | None = None) -> Value:
    assert isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))
    unit = calls.function(state, statement, frame, owner)
    for decorator in statement.decorator_list:
        evaluate(state, decorator, frame)
    _defaults(state, unit, frame)
    return Value(Role.FUNCTION, statement, statement.name, unit)


def _defaults(state: State, unit: Function, frame: Frame) -> None:
    arguments = unit.node.args
    for parameter, default in zip(reversed(unit.positional), reversed(arguments.defaults), strict=False):
        state.join_parameter(unit, parameter.arg, evaluate(state, default, frame))
    for parameter, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=False):
        if keyword_default is not None:
            state.join_parameter(unit, parameter.arg, evaluate(state, keyword_default, frame))


def _function(state: State, statement: ast.stmt, frame: Frame) -> None:
    value = _define(state, statement, frame)
    frame.names[value.name] = frozenset({value})
    state.name(frame.unit, value.name, frozenset({value}))


def _class(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.ClassDef)
    cls = state.classes.get(statement)
    if cls is None:
        cls = state.classes[statement] = Class(statement, module_of(frame.unit))
    for base in statement.bases:
        cls.bases |= evaluate(state, base, frame)
    inner = Frame(frame.unit, dict(frame.names), frame.shared)
    for member in statement.body:
        inner.statement = member
        if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
            state.name(cls, member.name, frozenset({_define(state, member, inner, cls)}))
        elif isinstance(member, ast.Assign):
            values = evaluate(state, member.value, inner)
            for target in member.targets:
                if isinstance(target, ast.Name):
                    state.name(cls, target.id, values)
    value = Value(Role.CLASS, statement, statement.name, cls)
    frame.names[statement.name] = frozenset({value})
    state.name(frame.unit, statement.name, frozenset({value}))


def _import(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.Import)
    for alias in statement.names:
        top = alias.name.split(".")[0]
        full = members.module_named(state, alias.name, 0, frame)
        if alias.asname is not None:
            values = full or frozenset({Value(Role.KNOWN, name=alias.name)})
            _imported(state, alias.asname, values, frame)
        else:
            _imported(
                state,
                top,
                members.module_named(state, top, 0, frame) or frozenset({Value(Role.KNOWN, name=top)}),
                frame,
            )


def _import_from(state: State, statement: ast.stmt, frame: Frame) -> None:
    assert isinstance(statement, ast.ImportFrom)
    if statement.module in _TARGETS and any(alias.name == "Accelerator" for alias in statement.names):
        found = NOTHING  # a library, also where its source lies beside the program
    else:
        found = members.module_named(state, statement.module or "", statement.level, frame)
    source = next((value.unit for value in found if isinstance(value.unit, Module)), None)
    for alias in statement.names:
        if alias.name == "*":
            if source is not None:
                for name, values in state.exported(source).items():
                    _imported(state, name, values, frame)
            continue
        if source is not None:
            values = state.look(source, alias.name) or members.submodule(state, source, alias.name)
        else:
            prefix = "." * statement.level + (statement.module or "")
            values = frozenset({Value(Role.KNOWN, name=f"{prefix}.{alias.name}".lstrip("."))})
        _imported(state, alias.asname or alias.name, values, frame)


#: What converted programs import; their tables say what there is to know.
_TARGETS = frozenset({"runtime", "accelerate"})


def _imported(state: State, name: str, values: Values, frame: Frame) -> None:
    frame.names[name] = values or frame.names.get(name, NOTHING) | values
    state.name(frame.unit, name, values)


_KINDS: dict[type[ast.stmt], Callable[[State, ast.stmt, Frame], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.Assert: _test,
    ast.Raise: _test,
    ast.Delete: _test,
    ast.Global: _global,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
}
if hasattr(ast, "TryStar"):
    _KINDS[ast.TryStar] = _try
