"""From which files code is entered."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_main_guard
from migrate.analysis.units import Function, Module, module_of

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program


def entered_from(facts: Facts, unit: Unit) -> frozenset[Module]:
    """The modules whose own code leads to a unit; that of a function which nothing calls is its own."""
    found: set[Module] = set()
    waiting, seen = [unit.original if isinstance(unit, Function) else unit], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Module):
            found.add(current)
            continue
        above = [call.caller for call in facts.callers(current)]
        above += [current.parent] if not above and current.parent is not None else []
        found |= {current.module} if not above else set()
        waiting += [caller.original if isinstance(caller, Function) else caller for caller in above]
    return frozenset(found)


def is_of_another_script(facts: Facts, program: Program, node: ast.AST) -> bool:
    """Whether code runs only when another file is the program."""
    guards = (above for above in facts.tree(node).up(node) if isinstance(above, ast.If))
    mains = {program.module}
    if program.start is not None:
        mains |= {module_of(program.start), *entered_from(facts, program.start)}
    return facts.module(node) not in mains and any(map(is_main_guard, guards))
