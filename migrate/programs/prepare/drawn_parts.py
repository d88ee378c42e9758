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
from migrate.programs.training.loss_parts import LossParts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


def drawn_parts(facts: Facts, loops: Loops, program: Program) -> Iterator[ast.AST]:
    """The drawn tests of training loops whose sides run different models for a loss, or use different results."""
    training = {loop.node for loop in program.training}
    losses: set[ast.AST] = set()
    for unit in units_of(facts, program):
        drawn = [] if is_inside_model(facts, unit) else [t for t in tests(facts, unit) if draws(facts, t.test)]
        results = _results(facts, program, unit) if drawn else frozenset()
        for test in drawn:
            losses = losses or _behind_losses(facts, program)
            one, other = (_parts(facts, program, side, results, losses) for side in both_sides(test))
            if one != other and any(loop in training for loop in loops.around(test, unit)):
                yield test


def _behind_losses(facts: Facts, program: Program) -> set[ast.AST]:
    """What the losses are computed from: not what a step runs to act, `env.step(model(state).argmax())`."""
    parts = (LossParts(facts, loop, program.model_origins) for loop in program.training)
    return {node for each in parts for node in each.each()}


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
    facts: Facts,
    program: Program,
    side: Iterable[ast.AST],
    results: Collection[str],
    losses: Collection[ast.AST],
) -> frozenset[ast.AST | str]:
    """The trained models that one side of a test runs for a loss, and the results that it reads for one."""
    found: set[ast.AST | str] = set()
    for node in (inner for each in side for inner in ast.walk(each) if inner in losses):
        if isinstance(node, ast.Call) and not without_gradients(facts, node):
            found |= origins(facts.values(node.func), Role.MODEL) & program.model_origins
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in results:
            found.add(node.id)
    return frozenset(found)
