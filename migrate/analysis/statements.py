"""Running statements: how they change what the names mean."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from migrate.analysis import containers, definitions, imports, rounds
from migrate.analysis.entry import entered, may_swallow
from migrate.analysis.exports import may_bind
from migrate.analysis.expressions import evaluate
from migrate.analysis.iteration import iterate
from migrate.analysis.patterns import capture
from migrate.analysis.roles import NOTHING, Role, Values
from migrate.analysis.state import Frame, State
from migrate.analysis.syntax import TRIES, Loop
from migrate.analysis.targets import assign
from migrate.analysis.units import Function, Module, module_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def run(state: State, body: Sequence[ast.stmt], frame: Frame) -> None:
    """Run the statements one after the other; the frame's names are those after the last."""
    frame.ended = False
    for statement in body:
        outer, frame.statement = frame.statement, statement
        kind = _KINDS.get(type(statement))
        if kind is not None:
            kind(state, statement, frame)
            if frame.seen is not None:
                frame.look_out(frame.names)
        frame.statement = outer


def _branches(state: State, frame: Frame, *bodies: Sequence[ast.stmt]) -> None:
    """Run each body from the same start; afterwards a name is whatever one of them made of it that goes on."""
    _arms(state, frame, [(body, {}) for body in bodies])


def _arms(state: State, frame: Frame, arms: Sequence[tuple[Sequence[ast.stmt], dict[str, Values]]]) -> None:
    """The same for bodies that are run only where some names are of the values beside them."""
    start = frame.names
    after: list[dict[str, Values]] = []
    for body, names in arms:
        frame.names = start | names
        run(state, body, frame)
        if not frame.ended:
            after.append(frame.names)
    frame.ended = not after
    if after:
        frame.names = merged(after)


def merged(scopes: Sequence[dict[str, Values]]) -> dict[str, Values]:
    """The union of what each scope says of each name."""
    names = dict(scopes[0])
    for scope in scopes[1:]:
        for name, values in scope.items():
            old = names.get(name)
            names[name] = values if old is None or old is values else old | values
    return names


def _assign(state: State, statement: ast.Assign, frame: Frame) -> None:
    values = evaluate(state, statement.value, frame)
    for target in statement.targets:
        assign(state, target, values, frame)


def _annotated(state: State, statement: ast.AnnAssign, frame: Frame) -> None:
    if statement.value is not None:
        assign(state, statement.target, evaluate(state, statement.value, frame), frame)


def _augmented(state: State, statement: ast.AugAssign, frame: Frame) -> None:
    before, further = evaluate(state, statement.target, frame), evaluate(state, statement.value, frame)
    if isinstance(statement.op, (ast.Add, ast.BitOr)) and containers.grow(state, before, further):
        further = frozenset(value for value in further if value.role is not Role.CONTAINER)
    # The old value stays possible: a count that starts at zero and grows by statistics is both.
    assign(state, statement.target, before | further, frame)


def _expression(state: State, statement: ast.Expr, frame: Frame) -> None:
    evaluate(state, statement.value, frame)


def _return(state: State, statement: ast.Return, frame: Frame) -> None:
    if statement.value is not None:
        values = evaluate(state, statement.value, frame)
        if isinstance(frame.unit, Function):
            state.give(frame.unit, values)
    frame.ended = True


def _raise(state: State, statement: ast.stmt, frame: Frame) -> None:
    _look_at(state, statement, frame)
    frame.ended = True


def _break(state: State, statement: ast.stmt, frame: Frame) -> None:
    frame.left.append(frame.names)
    frame.ended = True


def _continue(state: State, statement: ast.stmt, frame: Frame) -> None:
    frame.again.append(frame.names)
    frame.ended = True


def _if(state: State, statement: ast.If, frame: Frame) -> None:
    evaluate(state, statement.test, frame)
    is_body = rounds.decided(statement.test, frame.keys)
    if is_body is not None:
        run(state, statement.body if is_body else statement.orelse, frame)
        return
    asked = _asked_for_a_name(statement.test, frame)
    if asked is None:
        _branches(state, frame, statement.body, statement.orelse)
        return
    name, having, lacking = asked
    arms = ((statement.body, having), (statement.orelse, lacking))
    _arms(state, frame, [(body, {name: values}) for body, values in arms if values])


def _asked_for_a_name(test: ast.expr, frame: Frame) -> tuple[str, Values, Values] | None:
    """`hasattr(module, "Model")` of modules of the project: the name, those that have it, and those that lack it."""
    match test:
        case ast.Call(func=ast.Name("hasattr"), args=[ast.Name(name), ast.Constant(str(attribute))]):
            asked = frame.names.get(name, NOTHING)
            having = frozenset(v for v in asked if isinstance(v.unit, Module) and may_bind(v.unit, attribute))
            if having and all(isinstance(value.unit, Module) for value in asked):
                return name, having, asked - having
    return None


def _for(state: State, statement: ast.For | ast.AsyncFor, frame: Frame) -> None:
    source = evaluate(state, statement.iter, frame)
    if isinstance(statement, ast.For):
        turns = rounds.of_loop(state, statement, frame, evaluate)
        if turns is not None:
            _by_turns(state, statement, turns, frame)
            return

    def head() -> None:
        assign(state, statement.target, iterate(state, source), frame)

    _loop(state, statement, frame, head)


def _by_turns(state: State, statement: ast.For, turns: Sequence[rounds.Turn], frame: Frame) -> None:
    """Run the body for one key after the other; nothing leaves such a loop before its end."""
    state.loops[statement] = frame.unit.original
    again, around, keys = frame.again, frame.round, frame.keys
    for turn in turns:
        frame.again, frame.round, frame.keys = [], turn.round, keys | turn.keys
        for name, values in turn.given:
            assign(state, name, values, frame)
        run(state, statement.body, frame)
        frame.names = merged([*([] if frame.ended else [frame.names]), *frame.again] or [frame.names])
    frame.again, frame.round, frame.keys, frame.ended = again, around, keys, False


def _while(state: State, statement: ast.While, frame: Frame) -> None:

    def head() -> None:
        evaluate(state, statement.test, frame)

    _loop(state, statement, frame, head)


_ROUNDS = 4  # names that are handed round a longer ring (a = b; b = c; ...) are not followed to its end


def _loop(state: State, statement: Loop, frame: Frame, head: Callable[[], None]) -> None:
    """Run the body until the names at its start are what they were, with what it makes of them.

    A name that the body reads before it gives it a value has, from the second time on, the value of the time before.
    """
    state.loops[statement] = frame.unit.original
    outer, frame.left, frame.again = (frame.left, frame.again), [], []
    start, missed = frame.names, frame.missed
    for _ in range(_ROUNDS):
        frame.names, frame.missed = dict(start), set()
        surprises = state.agenda.surprises[frame.unit]
        head()
        run(state, statement.body, frame)
        before, start = start, merged([start, *([] if frame.ended else [frame.names]), *frame.again])
        missed |= frame.missed
        if state.agenda.surprises[frame.unit] > surprises:  # an object holds more than at the start of this round
            continue
        late = [name for name in frame.missed if name in start and name not in before]
        if not late and all(start[name] is values or start[name] == values for name, values in before.items()):
            break
    frame.missed = missed
    frame.names = dict(start)
    run(state, statement.orelse, frame)
    ends = frame.left if frame.ended else [frame.names, *frame.left]
    frame.left, frame.again = outer
    frame.ended = False
    frame.names = merged(ends or [start])


def _with(state: State, statement: ast.With | ast.AsyncWith, frame: Frame) -> None:
    swallows = False
    for item in statement.items:
        given = evaluate(state, item.context_expr, frame)
        swallows = swallows or may_swallow(state, item.context_expr, given)
        values = entered(state, given)
        if item.optional_vars is not None:
            assign(state, item.optional_vars, values, frame)
    if swallows:
        raised = _watched(state, statement.body, frame)
        frame.names = raised if frame.ended else merged([frame.names, raised])
        frame.ended = False
    else:
        run(state, statement.body, frame)


def _try(state: State, statement: ast.Try, frame: Frame) -> None:
    raised = _watched(state, statement.body, frame)
    leaving = [raised]  # what the names may be where an exception leaves the whole, or `return` does
    if not frame.ended:
        leaving.append(_watched(state, statement.orelse, frame))
    after = [] if frame.ended else [frame.names]
    for handler in statement.handlers:
        frame.names = dict(raised)
        if handler.name is not None:
            frame.names[handler.name] = NOTHING
        leaving.append(_watched(state, handler.body, frame))
        if not frame.ended:
            after.append(frame.names)
    names, ended = merged(after or leaving), not after
    if statement.finalbody and any(names.get(name) != values for each in leaving for name, values in each.items()):
        if frame.is_leaving:  # once is enough here: else what is nested so would be run over and over
            names = merged([names, *leaving])
        else:
            frame.names, frame.is_leaving = merged(leaving), True
            run(state, statement.finalbody, frame)
            frame.is_leaving = False
    frame.names, frame.ended = names, ended
    if statement.finalbody:
        run(state, statement.finalbody, frame)
        frame.ended = frame.ended or ended


def _watched(state: State, body: Sequence[ast.stmt], frame: Frame) -> dict[str, Values]:
    """Run a body that an exception may leave anywhere; what its names may be then."""
    outer, raised = frame.seen, dict(frame.names)
    frame.seen = raised
    run(state, body, frame)
    frame.seen = outer
    frame.look_out(raised)
    return raised


def _match(state: State, statement: ast.Match, frame: Frame) -> None:
    values = evaluate(state, statement.subject, frame)
    start, after = frame.names, []
    for case in statement.cases:
        frame.names = dict(start)
        capture(state, case.pattern, values, frame)
        if case.guard is not None:
            evaluate(state, case.guard, frame)
        run(state, case.body, frame)
        if not frame.ended:
            after.append(frame.names)
    last = statement.cases[-1]
    is_exhaustive = last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
    if not is_exhaustive:
        after.append(start)
    frame.names, frame.ended = merged(after or [start]), not after


def _delete(state: State, statement: ast.Delete, frame: Frame) -> None:
    for target in statement.targets:
        if isinstance(target, ast.Subscript):
            for owner in evaluate(state, target.value, frame):
                if owner.role is Role.CONTAINER:
                    containers.shorten(state, owner)
        evaluate(state, target, frame)
        if isinstance(target, ast.Name):
            frame.names.pop(target.id, None)


def _look_at(state: State, statement: ast.stmt, frame: Frame) -> None:
    """Evaluate the expressions of an `assert` or `raise`."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            evaluate(state, child, frame)


def _global(state: State, statement: ast.Global, frame: Frame) -> None:
    frame.shared.update(dict.fromkeys(statement.names, module_of(frame.unit)))


def _nonlocal(state: State, statement: ast.Nonlocal, frame: Frame) -> None:
    for name in statement.names:
        unit = frame.unit.parent if isinstance(frame.unit, Function) else None
        while unit is not None and name not in unit.names and unit.parent is not None:
            unit = unit.parent
        if unit is not None:
            frame.shared[name] = unit


_KINDS: dict[type[ast.stmt], Callable[[State, Any, Frame], None]] = {
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
    ast.Match: _match,
    ast.Assert: _look_at,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Delete: _delete,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.FunctionDef: definitions.define_function,
    ast.AsyncFunctionDef: definitions.define_function,
    ast.ClassDef: definitions.define_class,
    ast.Import: imports.import_modules,
    ast.ImportFrom: imports.import_names,
}
_KINDS.update(dict.fromkeys(TRIES, _try))
