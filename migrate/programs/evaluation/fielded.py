"""Batches and results with fields, `batch["labels"]`: not all may have rows, and what has none cannot be gathered.

What is handed on is followed into the functions that get it, and what the program puts together of a batch by itself,
`moved[key] = value.to(device)`, is looked into.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.programs.values.results import has_fields
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Function

_DEEPEST = 3  # functions between the loop and the place that asks for a field


def has_parts(facts: Facts, values: Values, reading: Sequence[ast.Name]) -> str | None:
    """Why not all of what a name has can be gathered, as far as the places that read it tell."""
    if _holds_batch(facts, values):
        return "holds parts of the batch; not all of it may have rows"
    if roles(values) & FROM_LOADER and any(is_fielded(facts, node) for node in reading):
        return "is a dictionary, or has fields; not all of it may have rows"
    return None


def is_fielded(facts: Facts, node: ast.expr, depth: int = _DEEPEST) -> bool:
    """Whether a field is asked of what a place reads, there or in a function that is handed it."""
    if has_fields(facts, node):
        return True
    return depth > 0 and any(is_fielded(facts, inner, depth - 1) for inner in _handed_on(facts, node))


def _handed_on(facts: Facts, node: ast.expr) -> Iterator[ast.Name]:
    """Where the functions of the project that a call hands an expression to read it."""
    call = facts.tree(node).parents[node]
    if not isinstance(call, ast.Call) or call.func is node:
        return
    for unit in facts.targets(call):
        for name, given in received(call, unit).items():
            if given is node:
                yield from _reading(facts, unit, name)


def _reading(facts: Facts, unit: Function, name: str) -> Iterator[ast.Name]:
    for inner in facts.own(unit):
        if isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Load):
            yield inner


def _holds_batch(facts: Facts, values: Values) -> bool:
    """Whether what a name has is a container of the program's own with parts of the batch in it."""
    origins = [value.origin for value in values if value.role is Role.CONTAINER and value.origin is not None]
    return any(roles(held) & FROM_LOADER for origin in origins for held in facts.holding(origin).values())
