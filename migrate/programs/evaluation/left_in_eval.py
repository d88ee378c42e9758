"""Training loops that may begin while an evaluation before them has left the models in eval mode.

    for epoch in range(epochs):
        for x, y in train_loader:         # from the second epoch on: a pass in eval mode is one of an evaluation
            model.train()
            ...
        validate(model)                   # model.eval()

The runtime would deal out the rows of each batch there, as in an evaluation: such an epoch would take N times as many
steps as the first one, and a scheduler that counts N batches for a step would run ahead.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.evaluation.at_once import named_loaders
from migrate.programs.training.modes import Modes
from migrate.programs.training.phases import Phase, Phases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.program import Program


def left_in_eval(
    facts: Facts, program: Program, prepared: set[ast.AST]
) -> Iterator[tuple[LoopFact, tuple[ast.expr, ...]]]:
    """The loops that only train and may begin as evaluations, with the prepared loaders that they run over."""
    evaluating = {loop.node for loop in program.evaluation}
    modes, phases = Modes(facts, program), Phases(facts)
    for loop in program.training if program.models else ():
        if loop.node in evaluating or not loop.loaders or not loop.loaders <= prepared:
            continue
        if modes.may_be_evaluation_at(loop.node) and phases.of(loop).phase is Phase.TRAINING:
            if over := named_loaders(facts, loop):
                yield loop, over
