"""Training loops that may begin while an evaluation before them has left the models in eval mode.

    for epoch in range(epochs):
        for x, y in train_loader:         # from the second epoch on: a pass in eval mode is one of an evaluation
            model.train()
            ...
        validate(model)                   # model.eval()

The runtime would deal out the rows of each batch there, as in an evaluation: such an epoch would take N times as many
steps as the first one, and a scheduler that counts N batches for a step would run ahead. So it is where a loop takes
its batches from an iterator that is made above it, `batches = iter(train_loader)`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.programs.evaluation.at_once import named_loaders
from migrate.programs.training.begun import iterators_below
from migrate.programs.training.modes import Modes
from migrate.programs.training.phases import Phase, Phases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.program import Program


#: What makes an iterator that takes its batches from what it is given, and from nothing else.
_OVER_LOADERS = frozenset(f"builtins.{name}" for name in "iter enumerate zip".split())


def left_in_eval(
    facts: Facts, program: Program, prepared: set[ast.AST]
) -> Iterator[tuple[LoopFact, tuple[ast.expr, ...]]]:
    """The loops that only train and may begin as evaluations, with the prepared loaders that they run over."""
    evaluating = {loop.node for loop in program.evaluation}
    modes, phases = program.once(Modes, facts), Phases(facts)
    for loop in program.training if program.models else ():
        if loop.node in evaluating or not loop.loaders or not loop.loaders <= prepared:
            continue
        if modes.may_be_evaluation_at(loop.node) and phases.of(loop).phase is Phase.TRAINING:
            if over := named_loaders(facts, loop):
                yield loop, over


def begun_early(facts: Facts, program: Program) -> tuple[tuple[LoopFact, ast.Call], ...]:
    """The training loops that take batches from an iterator which may be made in eval mode, above them."""
    return program.once(_begun_early, facts)


def _begun_early(facts: Facts, program: Program) -> tuple[tuple[LoopFact, ast.Call], ...]:
    return tuple(_early(facts, program))


def _early(facts: Facts, program: Program) -> Iterator[tuple[LoopFact, ast.Call]]:
    modes = program.once(Modes, facts)
    for loop in program.training if program.models else ():
        if modes.is_evaluation_at(loop.node):
            continue
        for call in filter(modes.may_be_evaluation_at, iterators_below(facts, loop.node)):
            if loop.loaders & program.training_loaders & facts.loaders(facts.values(call)):
                yield loop, call


def begun_as_training(facts: Facts, program: Program) -> dict[ast.Call, tuple[ast.expr, ...]]:
    """Those of these iterators that only training loops take from, with the loaders that they are made of."""
    phases = Phases(facts)
    evaluating = {call for loop in program.evaluation for call in iterators_below(facts, loop.node)}
    found: dict[ast.Call, tuple[ast.expr, ...]] = {}
    others = set(evaluating)
    for loop, call in begun_early(facts, program):
        loaders = _only_loaders(facts, call)
        if not loaders or phases.of(loop).phase is not Phase.TRAINING:
            others.add(call)
        else:
            found[call] = loaders
    return {call: loaders for call, loaders in found.items() if call not in others}


def _only_loaders(facts: Facts, call: ast.Call) -> tuple[ast.expr, ...]:
    """`loader` of `iter(loader)`, both of `enumerate(zip(labeled, unlabeled))`; none: it is made of something else."""
    if call.keywords or not facts.called(call) or not facts.called(call) <= _OVER_LOADERS:
        return ()
    found: list[ast.expr] = []
    for given in call.args:
        if roles(facts.values(given)) == {Role.LOADER} and not isinstance(given, (ast.Call, ast.Starred)):
            found.append(given)
        elif isinstance(given, ast.Call) and (inside := _only_loaders(facts, given)):
            found += inside
        else:
            return ()
    return tuple(found)
