"""What a training step draws decides which model it runs, or which of a model's results its loss is made of.

    out = generator(x) if random() < 0.5 else other(x)
    loss = criterion(fine, y) if random() < 0.5 else criterion(coarse, y)     # of `fine, coarse = model(x)`

Each process may have drawn another one, and its gradients are of other layers than the rest average.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import writes
from migrate.programs.prepare.chosen_layers import both_sides, draws, tests
from migrate.programs.reach.outsiders import is_inside_model, units_of
from migrate.programs.training.gradients_off import without_gradients

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


def drawn_parts(facts: Facts, loops: Loops, program: Program) -> Iterator[ast.AST]:
    """The drawn tests of training loops whose sides run different models, or use different results of one."""
    training = {loop.node for loop in program.training}
    for unit in units_of(facts, program):
        if is_inside_model(facts, unit):
            continue
        results = _results(facts, program, unit)
        for test in tests(facts, unit):
            one, other = (_parts(facts, program, side, results) for side in both_sides(test))
            if one == other or not draws(facts, test.test) or without_gradients(facts, test):
                continue
            if any(loop in training for loop in loops.around(test, unit)):
                yield test


def _results(facts: Facts, program: Program, unit: Unit) -> frozenset[str]:
    """The names that a unit gives to the results of a model which has several: `fine, coarse = model(x)`."""
    found: set[str] = set()
    for node in facts.own(unit):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if origins(facts.values(node.value.func), Role.MODEL) & program.model_origins:
            found.update(*(writes(target) for target in node.targets if isinstance(target, ast.Tuple)))
    return frozenset(found)


def _parts(
    facts: Facts, program: Program, side: Iterable[ast.AST], results: Collection[str]
) -> frozenset[ast.AST | str]:
    """The trained models that one side of a test runs, and the results that it reads."""
    found: set[ast.AST | str] = set()
    for node in (inner for each in side for inner in ast.walk(each)):
        if isinstance(node, ast.Call):
            found |= origins(facts.values(node.func), Role.MODEL) & program.model_origins
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in results:
            found.add(node.id)
    return frozenset(found)
