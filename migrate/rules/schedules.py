"""schedulers: the learning rate after k epochs, or after k samples, is that of the original.

| original                                               | converted               |
|--------------------------------------------------------|-------------------------|
| stepped per batch, horizon from len(loader) before prepare | prepared            |
| stepped per batch, horizon from len(loader) after prepare  | not prepared        |
| the same, with a plain number of steps beside it, a warm-up | prepared, below it |
| stepped per batch, horizon a plain number                  | prepared, reported  |
| the same, in a training that ends after a number of steps  | not prepared, reported |
| stepped per epoch, or told the epoch                       | not prepared        |
| stepped in the last batch, `if i == len(loader) - 1`       | not prepared        |
| ReduceLROnPlateau                                          | not prepared        |
| the same, told an evaluation after every so many batches   | not prepared, reported |
| a rate set by a count of batches, horizon a number         | the count is multiplied |
| any of these with a plain number, in a program that distributes itself | stays       |

A prepared scheduler steps once for every process at each call, since N processes see N batches in one step. A rate that
the program sets itself, or a scheduler that is told where it is, goes by a count of steps. Set against another such
count (`step / len(loader)` after prepare) it is right as it is; set against a number of batches it is made to count
those of all processes:

    adjust_learning_rate(optimizer, step)   ->   adjust_learning_rate(optimizer, step * accelerator.num_processes)

Where the count is a part of a sum, `step % 1000 == 0` becomes `-step % 1000 // accelerator.num_processes == 0`: whether
one of the N batches of a step is the one that is waited for.
A training that ends after a number of steps takes the same number on N processes, each with N batches: there the rate
after k steps is that of the original. Where the schedule is made for that number in one case and for the length of a
loader in another (`t_total = args.max_steps if args.max_steps > 0 else epochs * len(loader)`), the loader is prepared
before its length is measured, so that both count steps.
What else waits for the last batch by a length that was measured before prepare, or by that of the data set, is told: no
process comes to it. So is an epoch that ends after a number of samples (`islice(loader, samples // batch_size)`).
Refused: a rate that waits for a certain batch (`if step % 1000 == 0`), that changes by a factor at every batch, or that
goes by both kinds of numbers at once; a scheduler that would be prepared and is stepped per epoch, too; an optimizer
that sets its own rate by how many of a number of steps it has taken (`BertAdam(..., t_total=epochs * len(loader))`).
Safe: on one process a prepared scheduler is the scheduler itself, and a count is multiplied by one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.programs.processes.replicas import differs
from migrate.programs.schedule.ends import ends, is_made_for
from migrate.programs.schedule.epoch_ends import passed_over
from migrate.programs.schedule.parts_of_epochs import parts_of_epochs
from migrate.programs.schedule.rates import is_plain_count
from migrate.programs.schedule.schedulers import Horizon, Pace, counts_given
from migrate.programs.training.weights import weights_by_count
from migrate.programs.values.lengths import Moments
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.programs.schedule.schedulers import Schedule
    from migrate.rules.draft import Draft


_BY_STEPS = "goes by the steps after which the training ends: on N processes each step takes N batches"


@rule("MIG118")
def schedulers(conversion: Conversion, draft: Draft) -> None:
    """Multiply counts, and say what was decided; what is prepared shows in prepare's arguments."""
    for count in conversion.rates.scaled:
        draft.wrap(count, f"{{it}} * {conversion.access.name(count)}.num_processes")
    for turn in conversion.rates.turns:
        _ask_of_all(conversion, draft, turn)
    for weight in weights_by_count(conversion):
        message = (
            f"`{ast.unparse(weight.node)}` weighs {weight.of} by a count of steps: N processes take N batches in each"
        )
        way_out = "count the batches of all processes: multiply the count by accelerator.num_processes"
        draft.note(weight.node, message, way_out)
    if not conversion.program.training_loaders and not differs(conversion.facts, conversion.loops, conversion.program):
        return  # every process takes the same batches: a step is what it was
    _say_passed_over(conversion, draft)
    for node in conversion.rates.by_steps[:1]:
        draft.note(node, f"the rate that is set by `{ast.unparse(node)}` {_BY_STEPS}")
    for schedule in conversion.schedules:
        if message := _said(conversion, schedule):
            draft.note(schedule.named.place(conversion.facts), f"{schedule.named.target} {message}")


def _say_passed_over(conversion: Conversion, draft: Draft) -> None:
    """Say of what waits for a batch that it does not come: each process has a share of them."""
    facts, loops, program = conversion.facts, conversion.loops, conversion.program
    moments = Moments(facts, program, conversion.placement.stages)
    for loop in (loop for loop in program.training if loop.loaders and program.handed is None):
        numbers = list(parts_of_epochs(facts, loop))
        for test, length in passed_over(facts, loops, program, moments, loop):
            if any(number in set(walk(test)) for number in numbers):
                continue
            what = f"`{ast.unparse(test)}` waits for a batch by `{ast.unparse(length)}`"
            message = f"{what}, the number of all: each of N processes comes to one N-th of them"
            draft.note(test, message, "measure the length of the loader below prepare, which is that of the share")
        for number in numbers:
            message = (
                f"the loop ends after `{ast.unparse(number)}` batches, as many on each of N processes: together they "
                "take N times the samples"
            )
            draft.note(number, message, "divide that number by accelerator.num_processes")


def _ask_of_all(conversion: Conversion, draft: Draft, turn: ast.BinOp) -> None:
    """Ask whether one of the batches of a step is the one that is waited for."""
    name = conversion.access.name(turn)
    draft.rewrite(turn, f"-{{count}} % {{every}} // {name}.num_processes", count=turn.left, every=turn.right)
    draft.note(turn, f"this asks whether one of the N batches of a step is one that `{ast.unparse(turn)}` waits for")


def _said(conversion: Conversion, schedule: Schedule) -> str:
    """What is to be known of a scheduler where a step takes N batches; empty if nothing."""
    if schedule.pace is Pace.METRIC and schedule.is_within_epochs:
        what = "each step takes N batches, so it is told N times less often in an epoch"
        return f"is stepped between batches: on N processes {what}"
    if schedule.pace is not Pace.BATCH or conversion.program.handed is not None:
        return ""
    if schedule.horizon is not Horizon.ABSOLUTE:
        return _beside_length(conversion, schedule)
    if schedule.named in conversion.prepared_schedulers:
        what = "prepared, so that N processes reach it after the same number of samples"
        return f"is stepped per batch over a fixed number of steps: {what}"
    return _BY_STEPS


def _beside_length(conversion: Conversion, schedule: Schedule) -> str:
    """What is to be known of one that goes by steps, since its length is measured below prepare."""
    facts, program = conversion.facts, conversion.program
    moments = Moments(facts, program, conversion.placement.stages)
    ended = ends(facts, conversion.loops, program, moments, schedule.steps)
    if ended and not is_made_for(facts, schedule, ended):
        what = f"the training ends by `{ast.unparse(ended[0])}`, after as many steps on N processes"
        return f"is made for the length of a loader, of which each of N processes has an N-th, and {what}"
    numbers = [each for each in counts_given(facts, schedule) if is_plain_count(facts, program, each)]
    if schedule.named in conversion.prepared_schedulers or not numbers:
        return ""
    return f"is given {ast.unparse(numbers[0])} steps beside a length: on N processes each of them takes N batches"
