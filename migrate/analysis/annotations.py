"""What the parameters of a function that nobody calls are likely to be: what their annotations say.

Nobody is seen to pass them, so the parameter itself stands for where they were made (`roles.stands_in`): it says what a
program is missing, and no edit rests on it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.calls import role_of
from migrate.analysis.members import attribute, lookup
from migrate.analysis.roles import NOTHING, Role, Value, Values
from migrate.analysis.state import Frame, State
from migrate.analysis.units import Class

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a parameter is believed to be.
_BELIEVED = frozenset(
    {
        Role.MODEL,
        Role.CRITERION,
        Role.OPTIMIZER,
        Role.SCHEDULER,
        Role.LOADER,
        Role.DATASET,
        Role.SAMPLER,
        Role.SCALER,
        Role.INSTANCE,
    }
)
#: `Optional[X]` and its like are an X, or nothing that is asked for.
_AROUND = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar"})


def believe(state: State) -> bool:
    """Give the parameters of functions that were run, and that nobody calls, what they say; was it news?"""
    news = False
    for unit in state.functions.values():
        if unit.calls or not state.agenda.is_met(unit):
            continue
        for parameter in (*unit.positional, *unit.node.args.kwonlyargs):
            if parameter.annotation is not None and not unit.parameters.get(parameter.arg):
                values = _likely(state, parameter, Frame(unit, {}))
                state.join_parameter(unit, parameter.arg, values)
                news = news or bool(values)
    return news


def _likely(state: State, parameter: ast.arg, frame: Frame) -> Values:
    assert parameter.annotation is not None
    found: set[Value] = set()
    for kind in _kinds(state, parameter.annotation, frame):
        if isinstance(kind.unit, Class):
            role, unit = role_of(state, kind.unit), kind.unit
        else:
            role, unit = state.known.role_of_base(kind.name) or Role.UNKNOWN, None
        if role in _BELIEVED:
            found.add(Value(role, parameter, kind.name, unit))
    return frozenset(found)


def _kinds(state: State, node: ast.expr, frame: Frame) -> Iterator[Value]:
    """The classes that an annotation names, the parts of a union each."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if (quoted := _parsed(node.value)) is not None:
            yield from _kinds(state, quoted, frame)
    elif isinstance(node, ast.BinOp):
        yield from _kinds(state, node.left, frame)
        yield from _kinds(state, node.right, frame)
    elif isinstance(node, ast.Subscript):
        yield from _subscript(state, node, frame)
    else:
        yield from (value for value in _named(state, node, frame) if value.role in (Role.KNOWN, Role.CLASS))


def _subscript(state: State, node: ast.Subscript, frame: Frame) -> Iterator[Value]:
    """`Optional[Net]`; `DataLoader[Batch]` is a DataLoader."""
    names = {value.name.rpartition(".")[2] for value in _named(state, node.value, frame)}
    if not names & _AROUND:
        yield from _kinds(state, node.value, frame)
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts[:1] if "Annotated" in names else parts:
        yield from _kinds(state, part, frame)


def _named(state: State, node: ast.expr, frame: Frame) -> Values:
    """What a dotted name means where the function stands. Nothing is recorded: an annotation uses nothing."""
    if isinstance(node, ast.Name):
        return lookup(state, node.id, frame)
    if isinstance(node, ast.Attribute):
        return NOTHING.union(*(attribute(state, value, node.attr) for value in _named(state, node.value, frame)))
    return NOTHING


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
