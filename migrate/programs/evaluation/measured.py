"""Lengths of an evaluation's loader that are taken before the runtime can know it for one.

    batches = len(loader)          # while the model trains, a process's share of the batches
    model.eval()
    for x, y in loader: ...        # and every process goes through all of them
    print(total / batches)

Below the loop the length is that of the pass that is over, so it is taken there. Where the loop itself needs it, or has
another one beside it, the runtime is asked for it: `batches = min(limit, accelerator.steps_per_evaluation(loader))`.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.syntax import reads, writes
from migrate.programs.evaluation.verdicts import InFull, Shared
from migrate.programs.values.accumulators import statements_after
from migrate.programs.values.readers import readers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.program import Program
    from migrate.programs.training.modes import Modes

_PLAIN = (ast.Name, ast.Attribute, ast.Tuple, ast.Constant, ast.BinOp, ast.operator, ast.expr_context)


def measured_below(facts: Facts, program: Program, modes: Modes, shared: Shared, *, can_ask: bool) -> Shared | InFull:
    """An evaluation with the lengths that are taken below it, or asked for; run in full where neither can be."""
    loop = shared.loop
    early = dict.fromkeys(_measured_early(facts, program, modes, loop))
    beside = [other for other in program.evaluation if other.unit is loop.unit and other.loaders & loop.loaders]
    trains = any(other.unit is loop.unit and other.loaders & loop.loaders for other in program.training)
    for statement in early:
        if len(beside) > 1 or not _can_wait(facts, loop, statement):
            calls = [call for each in early for call in _lengths(facts, loop, each)]
            if can_ask and not trains:
                return replace(shared, asked=tuple(calls))
            if can_ask and all(_is_followed(facts, call) for call in calls):
                return shared  # what a training reads as well is told apart where it is read (`asked`)
            what = f"`{ast.unparse(statement)}` takes the length of a training pass (line {statement.lineno})"
            return InFull(loop, f"{what}: take it below the loop")
    return replace(shared, measured=tuple(early)) if early else shared


def _measured_early(facts: Facts, program: Program, modes: Modes, loop: LoopFact) -> Iterator[ast.Assign]:
    """What takes a length above a loop while the models train, or of a loader that is trained on, and is read below."""
    read = {name for statement in (loop.node, *statements_after(facts, loop.node)) for name in reads(statement)}
    is_trained_on = bool(loop.loaders & program.training_loaders)
    for node in facts.own(loop.unit):
        if isinstance(node, ast.Assign) and node.lineno < loop.node.lineno and writes(node) & read:
            for call in _lengths(facts, loop, node):
                if is_trained_on or not is_known_for_one(facts, modes, loop, call):
                    yield node


def _is_followed(facts: Facts, call: ast.Call) -> bool:
    """Whether every place is known that reads a length."""
    return all(reader.node is not call for reader in readers(facts, call))


def _lengths(facts: Facts, loop: LoopFact, statement: ast.Assign) -> Iterator[ast.Call]:
    """The calls of `len` in a statement that take the length of a loop's loader."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and "builtins.len" in facts.called(node):
            if any(facts.loaders(facts.values(each)) & loop.loaders for each in node.args):
                yield node


def is_known_for_one(facts: Facts, modes: Modes, loop: LoopFact, call: ast.Call) -> bool:
    """Whether the runtime knows, where a length is taken, that it is for an evaluation.

    Before the first pass over a loader that shuffles, it takes that for one to train on, unless gradients are off.
    """
    if not modes.is_evaluation_at(call):
        return False
    return modes.is_without_gradients_at(call) or not any(_may_shuffle(facts, made) for made in loop.loaders)


def _may_shuffle(facts: Facts, made: ast.AST) -> bool:
    """Whether a loader is told to, or how: `DataLoader(data, 8, True)`, `shuffle=flag`, `sampler=...`, `**options`."""
    source = facts.source(made)
    if not isinstance(source, ast.Call):
        return False
    told = [k.value for k in source.keywords if k.arg in ("shuffle", "sampler", None)] + source.args[2:]
    return any(not isinstance(each, ast.Constant) or each.value for each in told)


def _can_wait(facts: Facts, loop: LoopFact, statement: ast.Assign) -> bool:
    """Whether nothing reads what is measured before the loop is over, and nothing else is done with it."""
    tree = facts.tree(statement)
    block = tree.block(statement)
    around = tree.in_block(loop.node, block)
    if around is None or not _only_measures(facts, statement):
        return False
    between = block[block.index(statement) + 1 : block.index(around) + 1]
    names = writes(statement)
    return all(names.isdisjoint(reads(each) | writes(each)) for each in between)


def _only_measures(facts: Facts, statement: ast.Assign) -> bool:
    """`size, batches = len(loader.dataset), len(loader)`."""
    parts = [*ast.walk(statement.targets[0]), *ast.walk(statement.value)]
    calls = [node for node in parts if isinstance(node, ast.Call)]
    is_plain = all(isinstance(node, (*_PLAIN, ast.Call)) for node in parts)
    return is_plain and len(statement.targets) == 1 and all("builtins.len" in facts.called(call) for call in calls)
