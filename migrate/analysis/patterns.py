"""What the names of a `match` pattern get."""

from __future__ import annotations

import ast

from migrate.analysis import containers, members
from migrate.analysis.expressions import evaluate
from migrate.analysis.records import fields_of
from migrate.analysis.roles import NOTHING, Role, Value, Values
from migrate.analysis.state import ELEMENT, MAPPING, Frame, State
from migrate.analysis.units import Class
from migrate.analysis.unpacking import everything, shares


def capture(state: State, pattern: ast.pattern, values: Values, frame: Frame) -> None:
    """Give the names of a pattern what they get from the values."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            capture(state, pattern.pattern, values, frame)
        _name(state, pattern.name, values, frame)
    elif isinstance(pattern, ast.MatchStar):
        _name(state, pattern.name, values, frame)
    elif isinstance(pattern, ast.MatchOr):
        for part in pattern.patterns:
            capture(state, part, values, frame)
    elif isinstance(pattern, ast.MatchSequence):
        for part, share in zip(pattern.patterns, shares(state, pattern.patterns, values), strict=True):
            capture(state, part, share, frame)
    elif isinstance(pattern, ast.MatchMapping):
        _mapping(state, pattern, values, frame)
    elif isinstance(pattern, ast.MatchClass):
        _class(state, pattern, values, frame)


def _name(state: State, name: str | None, values: Values, frame: Frame) -> None:
    if name is not None:
        members.give_name(state, name, values, frame)


def _mapping(state: State, pattern: ast.MatchMapping, values: Values, frame: Frame) -> None:
    for key, part in zip(pattern.keys, pattern.patterns, strict=True):
        found: set[Value] = set()
        for value in values:
            if value.role is Role.BATCH:
                found.add(value)
            elif value.role is Role.CONTAINER:
                found |= containers.under(state, value, key)
        capture(state, part, frozenset(found), frame)
    held = NOTHING.union(*(everything(state, value) for value in values if value.role is Role.CONTAINER))
    if pattern.rest is not None:
        state.store(pattern, ELEMENT, held)
        _name(state, pattern.rest, frozenset({Value(Role.CONTAINER, pattern, MAPPING)}), frame)


def _class(state: State, pattern: ast.MatchClass, values: Values, frame: Frame) -> None:
    classes = [value.unit for value in evaluate(state, pattern.cls, frame) if isinstance(value.unit, Class)]
    matched = frozenset(v for v in values if v.unit in classes) if classes else NOTHING
    fields = fields_of(state, classes[0]) if len(classes) == 1 else None
    names = [*(fields or []), *[""] * len(pattern.patterns)][: len(pattern.patterns)]
    parts = [*zip(names, pattern.patterns, strict=True), *zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True)]
    for name, part in parts:
        held = NOTHING.union(*(members.attribute(state, value, name) for value in matched)) if name else NOTHING
        capture(state, part, held, frame)
