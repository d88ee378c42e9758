"""Loops that go over a loader and run no model: whether they meet it as it was, above prepare.

They count labels, take the mean of the data, show a batch. Above prepare every process goes over all of it, as one did;
below it such a loop is an evaluation like any other.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.construction import is_constructor
from migrate.analysis.syntax import is_main_guard, line_of
from migrate.analysis.units import Function, Module, module_of
from migrate.programs.home.around import making
from migrate.programs.home.first_looks import is_first_look

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program
    from migrate.programs.stages import Stages


def only_looks(facts: Facts, loops: Loops, program: Program, loop: LoopFact) -> bool:
    """Whether a loop runs over a loader without a model before everything is made: it will see the raw loader."""
    if _is_script_elsewhere(facts, program, loop):
        return True
    if loops.calls_model(loop.node):
        return False
    if is_first_look(facts, program, loop.node, set(loop.loaders)):
        return True
    last = _last_made(facts, loops, program)
    return all(
        line < last if unit is program.home else _is_above_entry(facts, program, loop, unit, line)
        for unit, line in _places(facts, program, loop)
    )


def below_prepare(facts: Facts, loops: Loops, program: Program, stages: Stages) -> Iterator[LoopFact]:
    """The loops that were taken for such, and stand below prepare all the same: it had to be called that early."""
    prepared = {origin for stage in (*stages.each, *stages.elsewhere) for origin in stage.origins}
    for loop in loops.evaluation:
        mine = loop.loaders & prepared
        if not mine or loop in program.evaluation or _is_script_elsewhere(facts, program, loop):
            continue
        end = stages.of(mine).end
        if all(unit is program.home and end < line for unit, line in _places(facts, program, loop)):
            yield loop


def _places(facts: Facts, program: Program, loop: LoopFact) -> list[tuple[Unit, int]]:
    """The lines of a loop, or of the calls of its function, each with its unit."""
    callers = facts.callers(loop.unit) if isinstance(loop.unit, Function) and loop.unit is not program.home else ()
    return [(call.caller, call.node.lineno) for call in callers] or [(loop.unit, loop.node.lineno)]


def _is_above_entry(facts: Facts, program: Program, loop: LoopFact, unit: Unit, line: int) -> bool:
    """Whether a line stands above each call of its unit that hands the loader on, to where it is prepared."""
    start = program.start
    if start is None or any(facts.singles.is_made_in(start, o) for o in loop.loaders if unit is not start):
        return False
    lines = [line_of(program.entry)] if unit is start and program.entry is not None else []
    if is_constructor(start):
        lines += [call.node.lineno for call in making(facts, start) if call.caller is unit]
    is_handed = bool(loop.loaders) and (unit is not start or loop.loaders <= program.given)
    return is_handed and bool(lines) and line < min(lines)


def _last_made(facts: Facts, loops: Loops, program: Program) -> int:
    """The line of the last statement that makes a model or an optimizer up to the first training."""
    assert program.home is not None
    calls = (node for node in facts.own(program.home) if isinstance(node, ast.Call) and loops.trains(node))
    first = min((call.lineno for call in calls), default=0)
    made = [s.lineno for n in (*program.models, *program.optimizers) if n.unit is None for s in n.statements]
    return max((line for line in made if line <= first), default=max(made, default=0))


def _is_script_elsewhere(facts: Facts, program: Program, loop: LoopFact) -> bool:
    """Whether a loop stands under the main guard of a file that the program imports, where it never runs."""
    is_imported = isinstance(loop.unit, Module) and loop.unit is not module_of(program.start or loop.unit)
    return is_imported and any(map(is_main_guard, facts.tree(loop.node).up(loop.node)))
