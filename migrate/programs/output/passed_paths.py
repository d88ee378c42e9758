"""Paths that a caller hands to what writes and to what reads: `save(scores, path)`, then `evaluate(path)`.

What the path says is not known, nor needed: it is written alike in one function, and both were given it there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.values.sources import passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

    #: A function, and how an expression reads there.
    Passed = tuple[Unit, str]

_DEEPEST = 4


def passed_paths(facts: Facts, path: ast.expr) -> set[Passed]:
    """How a path is written in its function, and in those that hand it to there."""
    return set(_passed(facts, path, _DEEPEST))


def _passed(facts: Facts, path: ast.expr, depth: int) -> Iterator[Passed]:
    if isinstance(path, ast.Constant):
        return
    unit = facts.unit(path)
    yield unit, ast.unparse(path)
    if isinstance(path, ast.Name) and isinstance(unit, Function) and path.id in unit.parameter_names:
        for call in facts.callers(unit) if depth else ():
            given = passed(call, unit, path.id)
            yield from _passed(facts, given, depth - 1) if given is not None else ()
