"""How a learning-rate scheduler is stepped, and what follows for `prepare` (contract E5).

A prepared scheduler steps once for each process, since a step of N processes sees N batches. That is right for one
that is stepped per batch with a horizon in batches of one process, and wrong for one that is stepped per epoch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import arguments
from migrate.programs.schedule.epoch_ends import waited_for
from migrate.programs.values.lengths import lengths
from migrate.programs.values.sources import Sources, received

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import Loops
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
    `given` what it was made with, with all that this was made of; `is_within_epochs`: it steps between batches;
    `on_metric` are the steps that are told a metric: all where it goes by one, those with an argument where it may.
    """

    named: Named
    pace: Pace
    horizon: Horizon
    measured: tuple[ast.Call, ...]
    steps: tuple[ast.Call, ...] = ()
    given: tuple[ast.AST, ...] = ()
    is_within_epochs: bool = False
    on_metric: tuple[ast.Call, ...] = ()


#: Stepped on a metric, which their `step` is given.
_ON_METRIC = "torch.optim.lr_scheduler.ReduceLROnPlateau"


def schedules(facts: Facts, loops: Loops, program: Program) -> list[Schedule]:
    """The schedulers of a program."""
    found = []
    for named in program.schedulers:
        given = made_with(facts, named.origins)
        measured = tuple(length for node in given for length in lengths(facts, program, node))
        steps = tuple(steps_of(facts, named.origins))
        within = per_batch(facts, loops, program, steps)
        each_batch = [call for call in within if not waited_for(facts, loops, program, call)]
        pace = _pace(facts, program, named, steps, each_batch)
        horizon = Horizon.EPOCHS if pace in (Pace.EPOCH, Pace.METRIC, Pace.TOLD) else Horizon.ABSOLUTE
        horizon = Horizon.LOADER if measured else horizon
        on_metric = _on_metric(facts, named, steps) if pace in (Pace.EPOCH, Pace.METRIC) else ()
        found.append(Schedule(named, pace, horizon, measured, steps, given, bool(within), on_metric))
    return found


def steps_of(facts: Facts, made: Collection[ast.AST]) -> Iterator[ast.Call]:
    """The calls that step schedulers which were made at some places."""
    for use in facts.method_calls("step"):
        if not origins(facts.receiver(use.node), Role.SCHEDULER).isdisjoint(made):
            yield use.node


def _on_metric(facts: Facts, named: Named, steps: Sequence[ast.Call]) -> tuple[ast.Call, ...]:
    if not any(isinstance(o, ast.Call) and _ON_METRIC in facts.called(o) for o in named.origins):
        return ()
    return tuple(call for call in steps if call.args or call.keywords)


def per_batch(facts: Facts, loops: Loops, program: Program, steps: Iterable[ast.Call]) -> list[ast.Call]:
    """Those of some calls that stand in the training loops, or in those over batches around them."""
    training = {each for loop in program.training for each in (loop.node, loops.taking(loop.node))}
    return [c for c in steps if any(loop in training for loop in loops.around(c, facts.unit(c)))]


def _pace(
    facts: Facts, program: Program, named: Named, steps: Sequence[ast.Call], per_batch: Sequence[ast.Call]
) -> Pace:
    goes_by_metric = all(isinstance(o, ast.Call) and _ON_METRIC in facts.called(o) for o in named.origins)
    if per_batch and not (goes_by_metric and all(_is_evaluated(facts, program, call) for call in per_batch)):
        return Pace.TOLD if all(call.args or call.keywords for call in per_batch) else Pace.BATCH
    if steps and goes_by_metric:
        return Pace.METRIC
    return Pace.EPOCH if steps else Pace.NEVER


def _is_evaluated(facts: Facts, program: Program, step: ast.Call) -> bool:
    """Whether a scheduler is told what functions that evaluate give back, which is the same on all processes."""
    evaluating = {loop.unit for loop in program.evaluation} - {loop.unit for loop in program.training}
    told = arguments(step)
    sources = facts.once(Sources)
    given = [[each] if isinstance(each, ast.Call) else sources.given(each).expressions for each in told]
    made = [expression for expressions in given for expression in expressions]
    targets = [facts.targets(each) if isinstance(each, ast.Call) else [] for each in made]
    return all(given) and all(units and evaluating.issuperset(units) for units in targets)


#: What the names of parameters hold that are given a number of steps.
_COUNTED = ("warm", "step", "iter", "milestone")


def counts_given(facts: Facts, schedule: Schedule) -> Iterator[ast.expr]:
    """The numbers of steps that a scheduler is made with, by the names of the parameters that get them."""
    made = (getattr(statement, "value", None) for statement in schedule.named.statements)
    for call in (each for each in made if isinstance(each, ast.Call)):
        named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        if any("_with_warmup" in name for name in facts.called(call)):  # those of Transformers
            named |= dict(zip(("optimizer", "num_warmup_steps"), call.args, strict=False))
        for unit in facts.targets(call):
            named |= received(call, unit)
        yield from (given for name, given in named.items() if any(word in name.lower() for word in _COUNTED))


def made_with(facts: Facts, made: Iterable[ast.AST]) -> tuple[ast.AST, ...]:
    """What schedulers are made with beside their optimizer, and what that was made of."""
    calls = (origin for origin in made if isinstance(origin, ast.Call))
    given = [a for call in calls for a in arguments(call) if Role.OPTIMIZER not in roles(facts.values(a))]
    return tuple(facts.once(Sources).behind(given))
