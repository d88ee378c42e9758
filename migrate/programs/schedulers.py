"""How a learning-rate scheduler is stepped, and what follows for `prepare` (contract E5).

A prepared scheduler steps once for each process, since a step of N processes sees N batches. That is right for one
that is stepped per batch with a horizon in batches of one process, and wrong for one that is stepped per epoch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.programs.lengths import lengths, reached
from migrate.programs.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.naming import Named
    from migrate.programs.program import Program


class Pace(Enum):
    """When a scheduler is stepped."""

    BATCH = "per batch"
    TOLD = "to the epoch that it is told"
    EPOCH = "per epoch"
    METRIC = "on a metric"
    NEVER = "never"


class Horizon(Enum):
    """Where the number of steps it was made for comes from."""

    LOADER = "the length of a loader"
    ABSOLUTE = "a number"
    EPOCHS = "epochs"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A scheduler with how it is driven.

    `measured` are the expressions that read a loader's length for its horizon, `steps` the calls of its `step`,
    `given` what it was made with, with all that this was made of.
    """

    named: Named
    pace: Pace
    horizon: Horizon
    measured: tuple[ast.Call, ...]
    steps: tuple[ast.Call, ...] = ()
    given: tuple[ast.AST, ...] = ()


#: Stepped on a metric, which their `step` is given.
_ON_METRIC = "torch.optim.lr_scheduler.ReduceLROnPlateau"


def schedules(facts: Facts, loops: Loops, program: Program) -> list[Schedule]:
    """The schedulers of a program."""
    found = []
    for named in program.schedulers:
        given = _made_with(facts, named)
        measured = tuple(length for node in given for length in lengths(facts, program, node))
        steps = tuple(_steps(facts, named))
        pace = _pace(facts, loops, program, named, steps)
        horizon = Horizon.EPOCHS if pace in (Pace.EPOCH, Pace.METRIC, Pace.TOLD) else Horizon.ABSOLUTE
        found.append(Schedule(named, pace, Horizon.LOADER if measured else horizon, measured, steps, given))
    return found


def _steps(facts: Facts, named: Named) -> Iterator[ast.Call]:
    for use in facts.method_calls("step"):
        if origins(facts.receiver(use.node), Role.SCHEDULER) & named.origins:
            yield use.node


def _pace(facts: Facts, loops: Loops, program: Program, named: Named, steps: Sequence[ast.Call]) -> Pace:
    training = {loop.node for loop in program.training}
    per_batch = [c for c in steps if any(loop in training for loop in loops.around(c, facts.unit(c)))]
    if per_batch:
        return Pace.TOLD if all(call.args or call.keywords for call in per_batch) else Pace.BATCH
    if steps and all(isinstance(o, ast.Call) and _ON_METRIC in facts.called(o) for o in named.origins):
        return Pace.METRIC
    return Pace.EPOCH if steps else Pace.NEVER


def _made_with(facts: Facts, named: Named) -> tuple[ast.AST, ...]:
    made = [origin for origin in named.origins if isinstance(origin, ast.Call)]
    given = [argument for call in made for argument in (*call.args, *(keyword.value for keyword in call.keywords))]
    return tuple(reached(facts, Sources(facts), given))
