"""What an expression may be: one small function for each kind of expression."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from migrate.analysis import calls, members, rows
from migrate.analysis.arguments import Arguments
from migrate.analysis.roles import FROM_LOADER, NOTHING, PLACE, ROWS, Role, Value, Values
from migrate.analysis.state import ELEMENT, Frame, State, widened
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Callable


def evaluate(state: State, node: ast.expr, frame: Frame) -> Values:
    """The values of an expression; they are also recorded for the facts."""
    values = _KINDS[type(node)](state, node, frame)
    if values:
        old = state.values.get(node)
        if old is None:  # `state.record`, without a call: this is the innermost place of all
            state.values[node] = values
        elif old is not values and not values <= old:
            state.values[node] = widened(old, values)
    return values


def _name(state: State, node: ast.Name, frame: Frame) -> Values:
    values = frame.names.get(node.id)
    return members.lookup(state, node.id, frame) if values is None else values


def _attribute(state: State, node: ast.Attribute, frame: Frame) -> Values:
    found = NOTHING
    for value in evaluate(state, node.value, frame):
        part = members.attribute(state, value, node.attr)
        found = found | part if found else part
    return members.properties(state, found)


def _constant(state: State, node: ast.Constant, frame: Frame) -> Values:
    return constant(node.value) if isinstance(node.value, (str, int, float)) else NOTHING


_NUMBER = frozenset({Value(Role.NUMBER)})
LONGEST_TEXT = 40  # what is longer names nothing


@lru_cache(maxsize=4096, typed=True)  # True is not 1 here
def constant(value: str | float | bool) -> Values:  # noqa: PYI041 (bool is asked for below)
    """What a constant is: a text or a number."""
    if isinstance(value, str):
        return frozenset({Value(Role.TEXT, name=value if len(value) < LONGEST_TEXT else "<text>")})
    return NOTHING if isinstance(value, bool) else _NUMBER


def _call(state: State, node: ast.Call, frame: Frame) -> Values:
    callees = evaluate(state, node.func, frame)
    positional = [evaluate(state, argument, frame) for argument in node.args]
    named = {k.arg: evaluate(state, k.value, frame) for k in node.keywords}
    state.calls[node] = frame.unit
    return calls.call(state, callees, Arguments(node, positional, named), frame)


def _subscript(state: State, node: ast.Subscript, frame: Frame) -> Values:
    base = evaluate(state, node.value, frame)
    keys = evaluate(state, node.slice, frame)
    found: set[Value] = set()
    for value in base:
        if value.role is Role.BATCH or value.role is Role.SAMPLES:
            # A key picks a part of the batch; an index or a slice of it keeps rows only if it keeps them all.
            is_key = isinstance(node.slice, ast.Constant) or only_text(keys)
            found.add(value if is_key else Value(Role.SAMPLES, value.origin))
        elif value.role is Role.STATISTIC:
            found.add(value)
        elif value.role is Role.KNOWN:
            found |= rows.item(state, value.name, keys)
        elif value.role is Role.METHOD and value.unit is None and value.receiver is not None:
            if value.receiver.role in ROWS:
                found.add(Value(Role.STATISTIC, value.receiver.origin))
        elif value.origin is not None:
            key = _key(node.slice)
            exact = state.load(value.origin, key) if key is not None else NOTHING
            found |= exact or state.load(value.origin, ELEMENT)
            if not exact:  # by a key that is not known: any of what it holds
                found |= frozenset().union(*(held for k, held in state.held(value.origin).items() if k[:1] != "<"))
            if value.role is Role.CHECKPOINT and not exact:
                found.add(value)
    return frozenset(found)


def only_text(values: Values) -> bool:
    """Whether every value is a piece of text."""
    return bool(values) and all(value.role is Role.TEXT for value in values)


def _key(node: ast.expr) -> str | None:
    return str(node.value) if isinstance(node, ast.Constant) else None


def _operation(state: State, node: ast.expr, frame: Frame) -> Values:
    """Arithmetic and comparisons: rows stay rows, a folded batch stays folded; parameters and flags are handed on."""
    found = _parts(state, node, frame)
    if found == _NUMBER or not found:
        return found
    rows = frozenset(Value(Role.SAMPLES, value.origin) for value in found if value.role in ROWS)
    folded = frozenset(value for value in found if value.role is Role.STATISTIC)
    handed = frozenset(value for value in found if value.role in _HANDED_ON)
    if rows:  # a tensor and a number make a tensor
        handed = frozenset(value for value in handed if value.role is not Role.NUMBER)
    # Added up over a loop, per-batch tensors and counts are what they were: computed from the batch.
    return (rows or folded) | handed


_HANDED_ON = PLACE | {Role.PARAMETERS, Role.AVAILABLE, Role.TENSOR, Role.NUMBER, Role.CONTAINER}


def _either(state: State, node: ast.expr, frame: Frame) -> Values:
    """`and`, `or`, `x if c else y`: any of the parts."""
    if isinstance(node, ast.IfExp):
        evaluate(state, node.test, frame)
        return evaluate(state, node.body, frame) | evaluate(state, node.orelse, frame)
    return _parts(state, node, frame)


def _parts(state: State, node: ast.AST, frame: Frame) -> Values:
    found: Values = NOTHING
    for name in node._fields:
        field = getattr(node, name, None)
        for child in field if isinstance(field, list) else (field,):
            if isinstance(child, ast.expr):
                values = evaluate(state, child, frame)
                found = found | values if found else values
            elif isinstance(child, ast.keyword):
                found |= evaluate(state, child.value, frame)
    return found


def _sequence(state: State, node: ast.expr, frame: Frame) -> Values:
    assert isinstance(node, (ast.Tuple, ast.List, ast.Set))
    state.literals[node] = frame.unit
    for position, element in enumerate(node.elts):
        if isinstance(element, ast.Starred):
            state.store(node, ELEMENT, state.iterated(evaluate(state, element.value, frame)))
        else:
            state.store(node, str(position), evaluate(state, element, frame))
    return frozenset({Value(Role.CONTAINER, node)})


def _dict(state: State, node: ast.Dict, frame: Frame) -> Values:
    state.literals[node] = frame.unit
    for key, value in zip(node.keys, node.values, strict=False):
        values = evaluate(state, value, frame)
        if key is None:
            for other in values:
                if other.origin is not None:
                    state.copy(other.origin, node)
            continue
        evaluate(state, key, frame)
        state.store(node, _key(key) or ELEMENT, values)
    return frozenset({Value(Role.CONTAINER, node)})


def _comprehension(state: State, node: ast.expr, frame: Frame) -> Values:
    assert isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp))
    state.literals[node] = frame.unit
    inner = Frame(frame.unit, dict(frame.names), frame.shared, frame.statement)
    iterated: Values = NOTHING
    for generator in node.generators:
        source = evaluate(state, generator.iter, inner)
        iterated |= source
        unpack(state, generator.target, state.iterated(source), inner)
        for condition in generator.ifs:
            evaluate(state, condition, inner)
    if isinstance(node, ast.DictComp):
        evaluate(state, node.key, inner)
        elements = evaluate(state, node.value, inner)
    else:
        elements = evaluate(state, node.elt, inner)
    # The parts of a batch, moved or cast one by one, are a batch again.
    batch = frozenset(value for value in iterated if value.role is Role.BATCH and value in elements)
    if batch:
        return batch
    state.store(node, ELEMENT, elements)
    return frozenset({Value(Role.CONTAINER, node)}) | frozenset(
        value for value in elements if value.role is Role.PARAMETERS or value.role in FROM_LOADER
    )


def unpack(state: State, target: ast.expr, values: Values, frame: Frame) -> None:
    """Give the names of a `for` or comprehension target their values, without a binding of a statement."""
    if isinstance(target, ast.Name):
        frame.names[target.id] = values
        state.record(target, values)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for position, element in enumerate(target.elts):
            inner = element.value if isinstance(element, ast.Starred) else element
            unpack(state, inner, element_of(state, values, position), frame)
    elif isinstance(target, ast.Starred):
        unpack(state, target.value, values, frame)


def element_of(state: State, values: Values, position: int) -> Values:
    """What unpacking the values gives at a position."""
    found: set[Value] = set()
    for value in values:
        if value.role in FROM_LOADER or value.role in (Role.PARAMETERS, Role.CHECKPOINT):
            found.add(value)
        elif value.origin is not None and value.role in (Role.CONTAINER, Role.ITERATOR, Role.UNKNOWN):
            exact = state.load(value.origin, str(position))
            found |= exact or state.load(value.origin, ELEMENT)
        elif value.role is Role.DATASET:  # random_split gives a list of data sets
            found.add(value)
    return frozenset(found)


def _lambda(state: State, node: ast.Lambda, frame: Frame) -> Values:
    function = calls.function(state, node, frame)
    return frozenset({Value(Role.FUNCTION, node, "<lambda>", function)})


def _named(state: State, node: ast.NamedExpr, frame: Frame) -> Values:
    values = evaluate(state, node.value, frame)
    frame.names[node.target.id] = values
    state.name(frame.unit, node.target.id, values)
    return values


def _value(state: State, node: ast.expr, frame: Frame) -> Values:
    """Await x, *x: what is inside."""
    return _parts(state, node, frame)


def _yield(state: State, node: ast.expr, frame: Frame) -> Values:
    values = _parts(state, node, frame)
    if isinstance(node, ast.YieldFrom):
        values = state.iterated(values)
    if isinstance(frame.unit, Function):
        state.give(frame.unit, NOTHING, values)
    return NOTHING


def _joined(state: State, node: ast.expr, frame: Frame) -> Values:
    _parts(state, node, frame)
    return NOTHING


class _Kinds(dict[type[ast.expr], "Callable[[State, ast.expr, Frame], Values]"]):
    def __missing__(self, kind: type[ast.expr]) -> Callable[[State, ast.expr, Frame], Values]:
        return _parts


_KINDS = _Kinds(
    {
        ast.Name: _name,  # type: ignore[dict-item]
        ast.Attribute: _attribute,  # type: ignore[dict-item]
        ast.Constant: _constant,  # type: ignore[dict-item]
        ast.Call: _call,  # type: ignore[dict-item]
        ast.Subscript: _subscript,  # type: ignore[dict-item]
        ast.BinOp: _operation,
        ast.Compare: _operation,
        ast.UnaryOp: _operation,
        ast.BoolOp: _either,
        ast.IfExp: _either,
        ast.Tuple: _sequence,
        ast.List: _sequence,
        ast.Set: _sequence,
        ast.Dict: _dict,  # type: ignore[dict-item]
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.Lambda: _lambda,  # type: ignore[dict-item]
        ast.NamedExpr: _named,  # type: ignore[dict-item]
        ast.Await: _value,
        ast.Starred: _value,
        ast.Yield: _yield,
        ast.YieldFrom: _yield,
        ast.JoinedStr: _joined,
        ast.Slice: _joined,
    }
)
