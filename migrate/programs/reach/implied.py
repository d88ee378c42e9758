"""The project's functions that are entered without a call of theirs: `with Timer():`, `for batch in Progress(loader):`,
and what a decorator puts around a function.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.decorators import is_transparent
from migrate.analysis.syntax import arguments
from migrate.analysis.units import Class, Function
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_GONE_THROUGH = ("__iter__", "__next__")
_MANAGED = ("__enter__", "__exit__")


def implied(facts: Facts, units: Collection[Unit]) -> set[Function]:
    """Those that the statements of some units lead to, where no call of these does."""
    entered = {function for unit in units for node in facts.own(unit) for function in _entered(facts, node)}
    entered |= {wrapper for unit in units for wrapper in _around(facts, unit)}
    further = {unit.original for unit in reached(facts, entered) if isinstance(unit, Function)}
    return {unit for unit in further - {*units} if facts.is_editable(unit)}


def _entered(facts: Facts, node: ast.AST) -> Iterator[Function]:
    match node:
        case ast.For(iter=over) | ast.comprehension(iter=over):
            yield from (found for each in _gone_through(facts, over) for found in _methods(facts, each, _GONE_THROUGH))
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (found for each in items for found in _methods(facts, each.context_expr, _MANAGED))


def _around(facts: Facts, unit: Unit) -> Iterator[Function]:
    """What stands around a function by its decorators: `def inner(*args): ...`, which hands on what it gets."""
    for decorator in getattr(unit.node, "decorator_list", ()) if isinstance(unit, Function) else ():
        for value in facts.values(decorator):
            if isinstance(value.unit, Function) and is_transparent(value):
                yield from facts.nested(value.unit)


def _gone_through(facts: Facts, over: ast.expr) -> Iterator[ast.expr]:
    """What is iterated, and what a library's function goes through for it: `enumerate(bar)`."""
    yield over
    if isinstance(over, ast.Call) and not facts.targets(over):
        for given in arguments(over):
            yield from _gone_through(facts, given)


def _methods(facts: Facts, node: ast.expr, names: tuple[str, ...]) -> Iterator[Function]:
    classes = [value.unit for value in facts.values(node) if isinstance(value.unit, Class)]
    members = (member for cls in classes for name in names for member in cls.lookup(name))
    return (member.unit for member in members if isinstance(member.unit, Function))
