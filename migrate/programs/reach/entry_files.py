"""Code that runs when another file than the training script is the program."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.entrances import are_apart, entered_from
from migrate.analysis.syntax import is_main_guard
from migrate.analysis.units import module_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Call, Function, Module
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
    start = program.start
    calls = [call for call in facts.callers(unit) if start is None or not are_apart(facts, call.caller, start)]
    return [call for call in calls if not is_of_another_script(facts, program, call.node)]
