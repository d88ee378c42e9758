"""What runs before the accelerator is made, and so cannot ask for it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, defaults_of, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
    from migrate.programs.prepare.placement import Placement
    from migrate.programs.program import Program


def earlier(facts: Facts, program: Program, placement: Placement) -> set[Function]:
    """The functions that run before the accelerator is made: those that are called above it, and what they call."""
    assert program.start is not None
    spot = placement.accelerator
    line = spot.statement.lineno + (spot.where == "after")
    found: set[Function] = set()
    nodes = [*facts.own(program.start), *_defining(facts.own(program.start))]
    waiting = [n for n in nodes if isinstance(n, ast.Call) and n.lineno < line]
    while waiting:
        for unit in facts.targets(waiting.pop()):
            if unit not in found:
                found.add(unit)
                waiting += facts.own(unit).of(ast.Call)
    return found


def _defining(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What definitions among some nodes compute themselves: defaults, decorators, the bodies of classes."""
    for node in nodes:
        if isinstance(node, FUNCTIONS):
            for given in (*defaults_of(node), *getattr(node, "decorator_list", ())):
                yield from ast.walk(given)
        elif isinstance(node, ast.ClassDef):
            inside = list(own_nodes(node))
            yield from inside
            yield from _defining(inside)
