"""Giving targets their values: names are replaced, what objects hold is joined."""

from __future__ import annotations

import ast

from migrate.analysis import containers, members
from migrate.analysis.construction import each_own
from migrate.analysis.expressions import evaluate
from migrate.analysis.results import of_unpacked
from migrate.analysis.roles import BELONGING, Role, Values, texts
from migrate.analysis.state import Frame, State
from migrate.analysis.texts import text_of
from migrate.analysis.unpacking import shares


def assign(state: State, target: ast.expr, values: Values, frame: Frame) -> None:
    """Give a target its values, and remember the statement that did."""
    if isinstance(target, ast.Name):
        members.give_name(state, target.id, values, frame)
        state.record(target, values)
        state.bind(frame, target.id, values)
    elif isinstance(target, ast.Attribute):
        owners = evaluate(state, target.value, frame)
        for owner, own in each_own(state, owners, _assigned(frame, target), values, frame, evaluate):
            members.set_attribute(state, owner, target.attr, own)
        state.record(target, values)
        state.bind(frame, text_of(target), values)
    elif isinstance(target, ast.Subscript):
        _set_item(state, target, values, frame)
    elif isinstance(target, ast.Starred):
        assign(state, target.value, values, frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for inner, share in zip(target.elts, shares(state, target.elts, values), strict=True):
            assign(state, inner, of_unpacked(state, target, share, frame), frame)


def _assigned(frame: Frame, target: ast.Attribute) -> ast.expr | None:
    """The expression that the running statement gives as a whole to a target."""
    match frame.statement:
        case ast.AnnAssign(value=value):
            return value
        case ast.Assign([ast.Attribute(), *_], value):
            return value
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values) and target in targets:
            starred = any(isinstance(each, ast.Starred) for each in (*targets, *values))
            return None if starred else values[targets.index(target)]  # `self.net, self.optimizer = net, optimizer`
    return None


def _set_item(state: State, target: ast.Subscript, values: Values, frame: Frame) -> None:
    keys = evaluate(state, target.slice, frame)
    for owner in evaluate(state, target.value, frame):
        if owner.role in BELONGING:
            continue
        if owner.role is Role.MODULE:  # globals()["net"] = net
            for name in texts(keys):
                members.set_attribute(state, owner, name, values)
        else:
            containers.put(state, owner, target.slice, values, frame.keys)
