"""What an expression may be: one small function for each kind of expression."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from migrate.analysis import calls, containers, members, own_parameters, rounds
from migrate.analysis.arguments import Arguments
from migrate.analysis.entry import function
from migrate.analysis.factories import twin
from migrate.analysis.items import item
from migrate.analysis.iteration import iterate
from migrate.analysis.roles import (
    FROM_LOADER,
    NOTHING,
    NUMBER,
    PLACE,
    ROWS,
    Role,
    Value,
    Values,
    computed,
    of_role,
    only,
    texts,
)
from migrate.analysis.spreading import spread, spread_mapping
from migrate.analysis.state import ANY, ELEMENT, MAPPING, OVER, Frame, State
from migrate.analysis.units import Function
from migrate.analysis.unpacking import unpack
from migrate.analysis.widening import widened

if TYPE_CHECKING:
    from collections.abc import Callable


def evaluate(state: State, node: ast.expr, frame: Frame) -> Values:
    """The values of an expression; they are also recorded for the facts, if it is not a constant."""
    kind = type(node)
    if kind is ast.Constant:
        return constant(node.value)  # type: ignore[attr-defined]
    values = _KINDS[kind](state, node, frame)
    if values:
        old = state.values.get(node)
        if old is None:  # `state.record`, without a call: this is the innermost place of all
            state.values[node] = values
        elif old is not values and not values <= old:
            state.values[node] = widened(old, values)
    return values


def _name(state: State, node: ast.Name, frame: Frame) -> Values:
    values = frame.names.get(node.id)
    if values is None:
        return members.lookup(state, node.id, frame)
    if node.id in frame.unit.elsewhere:
        return values | members.lookup(state, node.id, frame)
    return values


def _attribute(state: State, node: ast.Attribute, frame: Frame) -> Values:
    found = NOTHING
    for value in evaluate(state, node.value, frame):
        part = members.attribute(state, value, node.attr)
        found = found | part if found else part
    return members.properties(state, found)


LONGEST_TEXT = 80  # what is longer names nothing


def constant(value: object) -> Values:
    """What a constant is: a text or a number."""
    return _constant(value) if isinstance(value, (str, int, float)) else NOTHING


@lru_cache(maxsize=4096, typed=True)  # True is not 1 here
def _constant(value: str | float) -> Values:
    if isinstance(value, str):
        return frozenset({Value(Role.TEXT, name=value if len(value) < LONGEST_TEXT else "<text>")})
    return NOTHING if isinstance(value, bool) else NUMBER


def _call(state: State, node: ast.Call, frame: Frame) -> Values:
    callees = evaluate(state, node.func, frame)
    arguments = Arguments(node)
    is_open = False  # behind elements of unknown number
    for argument in node.args:
        values = evaluate(state, argument, frame)
        if isinstance(argument, ast.Starred):
            is_open = spread(state, values, arguments) or is_open
        elif not is_open:
            arguments.positional.append(values)
        elif arguments.rest:
            arguments.rest |= values
        else:  # nobody knows where it stands
            arguments.loose |= values
    for keyword in node.keywords:
        values = evaluate(state, keyword.value, frame)
        if keyword.arg is not None:
            arguments.named[keyword.arg] = values
        else:
            arguments.others |= spread_mapping(state, values, arguments.named)
    unit = frame.unit
    state.calls[node] = unit.original
    state.homes[node] = state.homes[node.func] = unit  # at the function's name lie the tuples that enumerate() makes
    arguments.site = twin(state, node, frame)
    return calls.call(state, callees, arguments, frame)


def _subscript(state: State, node: ast.Subscript, frame: Frame) -> Values:
    base = evaluate(state, node.value, frame)
    keys = evaluate(state, node.slice, frame)
    return NOTHING.union(*[item(state, value, node, keys, frame) for value in base])


#: What decides in a condition, and stays what it is whatever is computed from it.
_FLAGS = PLACE | {Role.AVAILABLE}
_COMPARED = _FLAGS | {Role.TENSOR}
_HANDED_ON = _COMPARED | {Role.PARAMETERS, Role.NUMBER, Role.CONTAINER}


def _operation(state: State, node: ast.expr, frame: Frame) -> Values:
    """-x, ~x, not x."""
    return _computed(_parts(state, node, frame), _HANDED_ON)


def _computed(found: Values, handed_on: frozenset[Role]) -> Values:
    """What arithmetic gives: rows stay rows, a folded batch stays folded; the other roles are handed on, or lost."""
    if not found:  # as it is most often
        return found
    rows = computed(of_role(found, *ROWS), Role.SAMPLES)
    # Added up over a loop, per-batch tensors and counts are what they were: computed from the batch.
    folded = of_role(found, Role.STATISTIC)
    return (rows or folded) | frozenset(value for value in found if value.role in handed_on)


def _compare(state: State, node: ast.Compare, frame: Frame) -> Values:
    """A comparison of rows has rows; `is` and `in` look at the object as a whole."""
    found = _parts(state, node, frame)
    if any(isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for operator in node.ops):
        return frozenset(value for value in found if value.role in _FLAGS)
    return _computed(found, _COMPARED)


def _binary(state: State, node: ast.BinOp, frame: Frame) -> Values:
    left, right = evaluate(state, node.left, frame), evaluate(state, node.right, frame)
    if isinstance(node.op, (ast.Add, ast.Mod)) and only(left, Role.TEXT):  # "net_" + name, "cuda:%d" % rank
        begun = _begins(*(value.name.split("%")[0] if isinstance(node.op, ast.Mod) else value.name for value in left))
        end = node.right.value if isinstance(node.right, ast.Constant) else None
        is_open = isinstance(node.op, ast.Add) and any(ANY in value.name for value in left)  # "nets." + name + ".Net"
        if not is_open or not isinstance(end, str):
            return begun
        return frozenset(Value(Role.TEXT, name=f"{each.name}{end}") for each in begun)
    if isinstance(node.op, (ast.Add, ast.Mult)) and any(containers.is_sequence(value) for value in left | right):
        made = twin(state, node, frame)
        state.homes[made] = frame.unit
        containers.join(state, made, left, right, again=isinstance(node.op, ast.Mult))
        left, right = (frozenset(v for v in side if not containers.is_sequence(v)) for side in (left, right))
        return _computed(left | right, _HANDED_ON) | {Value(Role.CONTAINER, made)}
    found = _computed(left | right, _HANDED_ON)
    # A number and something else make something else.
    return found if left >= NUMBER and right >= NUMBER else found - NUMBER


def _begins(*given: str) -> Values:
    """Texts of which only the beginning is known."""
    return frozenset(Value(Role.TEXT, name=text.split(ANY)[0] + ANY) for text in given)


def _either(state: State, node: ast.IfExp | ast.BoolOp, frame: Frame) -> Values:
    """`and`, `or`, `x if c else y`: any of the parts."""
    if isinstance(node, ast.IfExp):
        evaluate(state, node.test, frame)
        is_body = rounds.decided(node.test, frame.keys)
        found, parts = NOTHING, [node.body] * (is_body is not False) + [node.orelse] * (is_body is not True)
    else:
        found, parts = evaluate(state, node.values[0], frame), node.values[1:]
    outer, frame.is_sure = frame.is_sure, False
    for part in parts:
        found |= evaluate(state, part, frame)
    frame.is_sure = outer
    return found


def _parts(state: State, node: ast.AST, frame: Frame) -> Values:
    found: Values = NOTHING
    for name in node._fields:
        field = getattr(node, name, None)
        for child in field if isinstance(field, list) else (field,):
            if isinstance(child, ast.expr):
                values = evaluate(state, child, frame)
                found = found | values if found else values
    return found


def _sequence(state: State, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Values:
    made = twin(state, node, frame)
    state.homes[made] = frame.unit
    found = frozenset({Value(Role.CONTAINER, made)})
    is_exact = not isinstance(node, ast.Set)
    for position, element in enumerate(node.elts):
        if isinstance(element, ast.Starred):
            values = evaluate(state, element, frame)
            found |= of_role(values, Role.PARAMETERS, Role.LOADER, Role.ITERATOR)  # as `list(loader)` gives its batches
            state.store(made, ELEMENT, iterate(state, values))
            is_exact = False  # behind elements of unknown number
        else:
            values = own_parameters.listed(state, element, evaluate(state, element, frame))
            state.store(made, str(position) if is_exact else ELEMENT, values)
    return found


def _dict(state: State, node: ast.Dict, frame: Frame) -> Values:
    made = twin(state, node, frame)
    state.homes[made] = frame.unit
    found = frozenset({Value(Role.CONTAINER, made, MAPPING)})
    for key, value in zip(node.keys, node.values, strict=False):
        values = evaluate(state, value, frame)
        if key is None:
            for other in values:
                if other.origin is not None and other.role in (Role.CONTAINER, Role.HOLDER):
                    state.copy(other.origin, made)
                elif other.role is Role.BATCH:
                    state.store(made, ELEMENT, frozenset({other}))
            continue
        evaluate(state, key, frame)
        state.store(made, containers.key_of(key) or ELEMENT, own_parameters.listed(state, value, values))
    return found


def _comprehension(
    state: State, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame
) -> Values:
    made = twin(state, node, frame)
    state.homes[made] = frame.unit
    keys: list[str] = []
    if isinstance(node, ast.DictComp):
        keys = rounds.keep_keys(state, node, made, frame, evaluate)
        turns = rounds.of_comprehension(state, node, frame, evaluate)
    else:
        turns = None if isinstance(node, ast.SetComp) else rounds.of_list(state, node, frame, evaluate)
    if turns is not None:
        return _by_key(state, node, made, turns, frame)
    inner = replace(frame, names=dict(frame.names), around=frame, is_sure=False)
    iterated: Values = NOTHING
    for generator in node.generators:
        source = evaluate(state, generator.iter, inner)
        iterated |= source
        unpack(state, generator.target, iterate(state, source), inner)
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
    if not elements and not state.settled and any(value.role is Role.BATCH for value in iterated):
        return NOTHING  # it may still turn out to be a batch
    for key in keys or [ELEMENT]:
        state.store(made, key, elements)
    if isinstance(node, ast.GeneratorExp):
        state.store(made, OVER, of_role(iterated, Role.LOADER, Role.ITERATOR))
    name = MAPPING if isinstance(node, ast.DictComp) else ""
    return of_role(elements, Role.PARAMETERS, *FROM_LOADER) | {Value(Role.CONTAINER, made, name)}


def _by_key(
    state: State,
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
    made: ast.AST,
    turns: list[rounds.Turn],
    frame: Frame,
) -> Values:
    """A dictionary of which each key has an object of its own, or a list with one at each position."""
    found = {Value(Role.CONTAINER, made, MAPPING if isinstance(node, ast.DictComp) else "")}
    for turn in turns:
        inner = replace(
            frame, names=dict(frame.names), around=frame, is_sure=False, round=turn.round, keys=frame.keys | turn.keys
        )
        evaluate(state, node.generators[0].iter, inner)
        for name, values in turn.given:
            unpack(state, name, values, inner)
        for condition in node.generators[0].ifs:
            evaluate(state, condition, inner)
        if isinstance(node, ast.DictComp):
            evaluate(state, node.key, inner)
        elements = evaluate(state, node.value if isinstance(node, ast.DictComp) else node.elt, inner)
        state.store(made, turn.key, elements)
        found |= of_role(elements, Role.PARAMETERS, *FROM_LOADER)
    return frozenset(found)


def _lambda(state: State, node: ast.Lambda, frame: Frame) -> Values:
    unit = function(state, node, frame)
    defaults(state, unit, frame)
    return frozenset({Value(Role.FUNCTION, node, "<lambda>", unit)})


def defaults(state: State, unit: Function, frame: Frame) -> None:
    """Join the defaults of a function into its parameters."""
    arguments = unit.node.args
    for parameter, default in zip(reversed(unit.positional), reversed(arguments.defaults), strict=False):
        state.join_default(unit, parameter.arg, evaluate(state, default, frame))
    for parameter, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=False):
        if keyword_default is not None:
            state.join_default(unit, parameter.arg, evaluate(state, keyword_default, frame))


def _named(state: State, node: ast.NamedExpr, frame: Frame) -> Values:
    values = evaluate(state, node.value, frame)
    name = node.target.id
    given = values if frame.is_sure else values | frame.names.get(name, NOTHING)
    members.give_name(state, name, given, frame)
    scope = frame.around
    while scope is not None and name not in frame.shared:  # it outlives the comprehension that it stands in
        scope.names[name] = given
        scope = scope.around
    state.record(node.target, values)
    return values


def _yield(state: State, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Values:
    values = _parts(state, node, frame)
    if isinstance(node, ast.YieldFrom):
        values = iterate(state, values)
    if isinstance(frame.unit, Function):
        state.give(frame.unit, NOTHING, values)
    return NOTHING


def _joined(state: State, node: ast.JoinedStr, frame: Frame) -> Values:
    """A text of which the beginning is known: f"cuda:{rank}", f"models.{kind}.{name}", f"{folder}.{name}"."""
    _parts(state, node, frame)
    known = [str(part.value) if isinstance(part, ast.Constant) else ANY for part in node.values]
    rest = "".join(known[1:])
    found = (f"{first}{rest}" for first in (known[:1] if known[:1] != [ANY] else _first_texts(state, node)))
    return frozenset(Value(Role.TEXT, name=text) for text in found if text and len(text) < LONGEST_TEXT)


def _first_texts(state: State, node: ast.JoinedStr) -> tuple[str, ...]:
    """What the name that a text begins with may be; what is not known of it is one possibility less."""
    first = node.values[0]
    if not isinstance(first, ast.FormattedValue) or first.format_spec is not None or first.conversion != -1:
        return ()
    found = state.values.get(first.value, NOTHING)
    return tuple(text for text in texts(found) if text != ANY) if only(found, Role.TEXT) else ()


def _slice(state: State, node: ast.expr, frame: Frame) -> Values:
    _parts(state, node, frame)
    return NOTHING


class _Kinds(dict[type[ast.expr], "Callable[[State, Any, Frame], Values]"]):
    """By kind of expression; all that are not listed, such as `await x` and `*x`, are what their parts may be."""

    def __missing__(self, kind: type[ast.expr]) -> Callable[[State, Any, Frame], Values]:
        return _parts


_KINDS = _Kinds(
    {
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Call: _call,
        ast.Subscript: _subscript,
        ast.BinOp: _binary,
        ast.Compare: _compare,
        ast.UnaryOp: _operation,
        ast.BoolOp: _either,
        ast.IfExp: _either,
        ast.Tuple: _sequence,
        ast.List: _sequence,
        ast.Set: _sequence,
        ast.Dict: _dict,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.Lambda: _lambda,
        ast.NamedExpr: _named,
        ast.Yield: _yield,
        ast.YieldFrom: _yield,
        ast.JoinedStr: _joined,
        ast.Slice: _slice,
    }
)
