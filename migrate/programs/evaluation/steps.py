"""Lengths of a loader that are taken for a training, where the runtime may take them for those of an evaluation.

    def train(model, loader):
        batches = len(loader)          # after an evaluation on this loader, in the epoch before, it is N times as long
        model.train()

In an evaluation of the runtime the rows of each batch are shared out, so it has as many steps as on one process, and
len() is that of the last pass, or of one that would begin now. With Accelerate it is always that of a process's share.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.programs.evaluation.asked import asked
from migrate.programs.reach.callees import entered, reached
from migrate.programs.training.modes import Modes
from migrate.programs.values.lengths import measured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.programs.loops import LoopFact


def taken_for_training(conversion: Conversion) -> Iterator[ast.Call]:
    """The calls of `len` that must give the steps of a training pass, whatever was before."""
    facts, program = conversion.facts, conversion.program
    trained = program.training_loaders & conversion.loader_origins
    taken = [(use.node, measured(facts, use.node)) for use in conversion.uses]
    taken = [(call, loaders) for call, loaders in taken if loaders and loaders <= trained]
    if not taken or conversion.package != "runtime":
        return
    modes, others = program.once(Modes, facts), asked(conversion)
    for call, loaders in taken:
        if call in others.taken:
            continue
        evaluating = [loop for loop in program.evaluation if loop.loaders & loaders]
        is_open = bool(evaluating) or modes.is_evaluation_at(call)
        if is_open and conversion.is_prepared_at(call, loaders) and roles(facts.values(call.args[0])) == {Role.LOADER}:
            training = [loop for loop in program.training if loop.loaders & loaders]
            if call in others.read.values() or _is_for_training(facts, call, training, evaluating):
                yield call


def _is_for_training(facts: Facts, call: ast.Call, training: list[LoopFact], evaluating: list[LoopFact]) -> bool:
    """Whether a length is taken above a training, not in a loop over the loader, nor for what such a loop has found.

    In a training loop that evaluates on the loader itself, every so many steps, it is that of the training, too.
    """
    unit = facts.unit(call)
    around = set(facts.tree(call).loops(call))
    here = [loop for loop in (*training, *evaluating) if loop.unit is unit]
    if any(loop.node in around for loop in here):
        inside = reached(facts, entered(facts, next(loop.node for loop in here if loop.node in around)))
        return any(loop.unit in inside for loop in evaluating) and not any(loop.node in around for loop in evaluating)
    if any(loop.node.lineno < call.lineno for loop in here):
        return False
    first = min(here, key=lambda loop: loop.node.lineno, default=None)
    if first is not None:
        return first in training
    return _leads_to(facts, unit, training) or unit not in reached(facts, (loop.unit for loop in evaluating))


def _leads_to(facts: Facts, unit: Unit, loops: list[LoopFact]) -> bool:
    inside = reached(facts, [unit])
    return any(loop.unit in inside for loop in loops)
