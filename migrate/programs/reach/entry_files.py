"""Code that runs when another file than the training script is the program."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.entrances import are_apart, entered_from
from migrate.analysis.syntax import is_main_guard
from migrate.analysis.units import Function, module_of
from migrate.programs.reach.callees import leading

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Call, Module
    from migrate.programs.program import Program


def is_of_another_script(facts: Facts, program: Program, node: ast.AST) -> bool:
    """Whether code runs only when another file is the program."""
    mains = {program.module}
    if program.start is not None:
        mains |= {module_of(program.start), *entered_from(facts, program.start)}
    return is_guarded_beside(facts, mains, node)


def is_guarded_beside(facts: Facts, mains: Collection[Module], node: ast.AST) -> bool:
    """Whether code stands under the main guard of a file that is none of some: it does not run with these."""
    guards = (above for above in facts.tree(node).up(node) if isinstance(above, ast.If))
    return facts.module(node) not in mains and any(map(is_main_guard, guards))


def calls_in(facts: Facts, program: Program, unit: Function) -> list[Call]:
    """The calls of a function that a program may make: not those of other scripts, `generate.py` beside `train.py`."""
    start, calls = program.start, facts.callers(unit)
    if start is not None:
        calls = [call for call in calls if not are_apart(facts, call.caller, start)]
    together = program.once(loaded_with, facts) if len(calls) > 1 else None
    if together is not None:
        calls = [call for call in calls if not together.isdisjoint(entered_from(facts, call.caller))]
    return [call for call in calls if not is_of_another_script(facts, program, call.node)]


def loaded_with(facts: Facts, program: Program) -> frozenset[Module] | None:
    """The files whose code may run where a program does, if that is under a main guard; None: it is not.

    A test that imports `train.py` calls some of its functions, and does not run what stands under the guard there.
    """
    start = program.start
    if start is None:
        return None
    enters, leads = entered_from(facts, start), leading(facts, [start])
    calls = [use.node for use in facts.calls if use.unit in enters and not leads.isdisjoint(facts.targets(use.node))]
    nodes = calls if isinstance(start, Function) else [loop.node for loop in program.training]
    if not all(any(map(is_main_guard, facts.tree(node).up(node))) for node in nodes):
        return None
    return frozenset().union(*map(facts.imported, enters))
