"""Schedulers that are stepped both per batch and per epoch (contract E5), under one name.

Mostly it holds schedulers of two kinds, and a flag says which of its steps are taken. A prepared one steps once for
each process at all of them, which is right for batches alone: after each epoch it would take N steps.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import module_of
from migrate.programs.program import Refusal
from migrate.programs.schedule.epoch_ends import waited_for
from migrate.programs.schedule.schedulers import per_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program
    from migrate.programs.schedule.schedulers import Schedule

#: Schedulers of which none is a kind of another.
_KINDS = frozenset(
    f"torch.optim.lr_scheduler.{name}LR"
    for name in "Step MultiStep Exponential CosineAnnealing OneCycle Cyclic Lambda Linear Polynomial Constant".split()
)


def stepped_at_both(facts: Facts, loops: Loops, program: Program, prepared: Iterable[Schedule]) -> Iterator[Refusal]:
    """Why a program is left of which a prepared scheduler is also stepped per epoch."""
    for schedule in prepared:
        within = per_batch(facts, loops, program, schedule.steps)
        for_batches = [call for call in within if not waited_for(facts, loops, program, call)]
        for call in schedule.steps:
            if call in for_batches or not _is_met(facts, schedule, call):
                continue
            if _is_per_epoch(facts, loops, call) and not _is_elsewhere(facts, loops, program, call):
                target = schedule.named.target
                at_both = f"{target} is stepped per epoch here, and per batch in line {for_batches[0].lineno}"
                why = f"{at_both}: prepared, it takes a step for each process at both"
                yield Refusal(call, "MIG118", why, f"give what is stepped per epoch a name beside {target}")


def _is_per_epoch(facts: Facts, loops: Loops, call: ast.Call) -> bool:
    """Whether a call stands in a loop that trains; `for _ in range(done): ...` makes up for a training before."""
    own = next(iter(facts.tree(call).loops(call)), None)
    if isinstance(own, ast.For) and isinstance(own.iter, ast.Call) and not loops.trains(own):
        if "builtins.range" in facts.called(own.iter):
            return False
    return any(loops.trains(loop) for loop in loops.around(call, facts.unit(call)))


def _is_elsewhere(facts: Facts, loops: Loops, program: Program, call: ast.Call) -> bool:
    """Whether a call trains with another script, which makes its scheduler in a function that both of them call."""
    module, mine = module_of(facts.unit(call)), {program.module, *(loop.unit.module for loop in program.training)}
    mine |= set() if program.start is None else {module_of(program.start)}
    if any(facts.are_near(module, each) for each in mine):
        return False
    own = {each for loop in program.training for each in (loop.node, *loops.around(loop.node, loop.unit))}
    return own.isdisjoint(loops.around(call, facts.unit(call)))


def _is_met(facts: Facts, schedule: Schedule, call: ast.Call) -> bool:
    """Whether a call may step a scheduler: not in `if isinstance(it, StepLR):` where it is of other classes."""
    kinds = {name for made in schedule.named.origins if isinstance(made, ast.Call) for name in facts.called(made)}
    below: ast.AST = call
    for above in facts.tree(call).up(call):
        if isinstance(above, ast.If) and below in above.body and isinstance(above.test, ast.Call):
            if "builtins.isinstance" in facts.called(above.test) and len(above.test.args) == 2:
                asked = facts.names(above.test.args[1])
                if asked and kinds and asked | kinds <= _KINDS and not asked & kinds:
                    return False
        below = above
    return True
