"""Evaluations that every process runs in full over a loader that shuffles: all must come to the same order.

    val_loader = DataLoader(data, batch_size=24, shuffle=True, drop_last=True)

Such a loader is not prepared, so each process draws the order from its own stream. What the last batch holds, or leaves
out, is part of a mean of batches: a program that stops by it, or sets its rate by it, would part ways. So it would
where the data set draws for each sample.
"""

from __future__ import annotations

import ast
from types import NoneType
from typing import TYPE_CHECKING

from migrate.analysis.syntax import argument_at
from migrate.analysis.units import Class
from migrate.programs.chance.calls import drawn_for_samples
from migrate.programs.chance.made_up import shuffles
from migrate.programs.chance.splits import Choice
from migrate.programs.evaluation.passes import evaluations, handed_out_loaders, prepared_loaders

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program

_SHUFFLE = 2  # its place among the arguments of a DataLoader


def orders(facts: Facts, loops: Loops, program: Program, *, can_ask: bool) -> dict[ast.Call, Choice]:
    """A call in each of these loops, and the library from which is drawn what it meets."""
    drawn = {loop.node: library for loop in program.evaluation if (library := _drawn_by(facts, loop)) is not None}
    if program.home is None or not drawn:
        return {}
    handed_out = facts.once(handed_out_loaders) - program.training_loaders
    _, in_full = evaluations(facts, loops, program, handed_out, can_ask=can_ask)
    prepared = {o for named in prepared_loaders(program, in_full, handed_out) for o in named.origins}
    raw = [each.loop.node for each in in_full if each.loop.node in drawn and each.loop.loaders - prepared]
    calls = {loop: next((node for node in ast.walk(loop) if isinstance(node, ast.Call)), None) for loop in raw}
    return {call: Choice(drawn[loop]) for loop, call in calls.items() if call is not None}


def _drawn_by(facts: Facts, loop: LoopFact) -> str | None:
    """The library that draws the order of a loop's samples, or draws for each of them; None: nothing seen does."""
    if _shuffles(facts, loop):
        return "torch"
    sets = [value.unit for loader in loop.loaders for value in facts.over(loader) if isinstance(value.unit, Class)]
    return min((library for each in sets for library in drawn_for_samples(facts, each)), default=None)


def _shuffles(facts: Facts, loop: LoopFact) -> bool:
    """Whether one of the loaders of a loop is seen to shuffle, by the stream of all; not where a flag says so."""
    made = [source for source in map(facts.source, loop.loaders) if isinstance(source, ast.Call)]
    told = {each: argument_at(each, _SHUFFLE, "shuffle") for each in made}
    return any(shuffles(facts, each) for each in made if isinstance(told[each], (ast.Constant, NoneType)))
