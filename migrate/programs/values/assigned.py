"""What a name is given in its function, also as a part of a tuple."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts


def assigned(facts: Facts, node: ast.Name) -> Iterator[ast.expr | None]:
    """What a name is given in its function; None for something else than one expression."""
    for binding in facts.bindings_in(facts.unit(node)):
        if binding.target == node.id:
            statement = binding.statement
            if isinstance(statement, ast.Assign) and not any(isinstance(to, ast.Name) for to in statement.targets):
                yield from parted(facts, statement, node.id)
            else:
                is_plain = isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign))
                yield getattr(statement, "value", None) if is_plain else None


def parted(facts: Facts, statement: ast.Assign, name: str) -> Iterator[ast.expr | None]:
    """What a name is given as a part of a tuple: one that stands there, or that a function returns."""
    target, value = statement.targets[0], statement.value
    names = [to.id if isinstance(to, ast.Name) else "" for to in getattr(target, "elts", ())]
    given: list[ast.expr | None] = [value]
    if isinstance(value, ast.Call):
        returns = [n for unit in facts.targets(value) for n in facts.own(unit) if isinstance(n, ast.Return)]
        given = [node.value for node in returns] or [None]
    for each in given:
        is_tuple = isinstance(each, ast.Tuple) and len(each.elts) == len(names) and name in names
        yield each.elts[names.index(name)] if is_tuple and isinstance(each, ast.Tuple) else None


def paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is assigned to what: `self.sum, self.count = 0, 0`."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    given = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    is_each = len(given) == len(target.elts) and not any(isinstance(e, ast.Starred) for e in (*given, *target.elts))
    for number, each in enumerate(target.elts):
        yield from paired(each, given[number] if is_each else value)
