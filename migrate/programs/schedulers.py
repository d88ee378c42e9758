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
from migrate.analysis.syntax import reads
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Named, Program


class Pace(Enum):
    """When a scheduler is stepped."""

    BATCH = "per batch"
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

    `measured` are the expressions that read a loader's length for its horizon, `steps` the calls of its `step`.
    """

    named: Named
    pace: Pace
    horizon: Horizon
    measured: tuple[ast.AST, ...]
    steps: tuple[ast.Call, ...] = ()


#: Stepped on a metric, which their `step` is given.
_ON_METRIC = "torch.optim.lr_scheduler.ReduceLROnPlateau"


def schedules(facts: Facts, loops: Loops, program: Program) -> list[Schedule]:
    """The schedulers of a program."""
    found = []
    for named in program.schedulers:
        measured = tuple(_measured(facts, program, named))
        steps = tuple(_steps(facts, named))
        pace = _pace(facts, loops, program, named, steps)
        horizon = Horizon.EPOCHS if pace in (Pace.EPOCH, Pace.METRIC) else Horizon.ABSOLUTE
        found.append(Schedule(named, pace, Horizon.LOADER if measured else horizon, measured, steps))
    return found


def _steps(facts: Facts, named: Named) -> Iterator[ast.Call]:
    for use in facts.method_calls("step"):
        if origins(facts.receiver(use.node), Role.SCHEDULER) & named.origins:
            yield use.node


def _pace(facts: Facts, loops: Loops, program: Program, named: Named, steps: Sequence[ast.Call]) -> Pace:
    training = {loop.node for loop in program.training}
    if any(loop in training for call in steps for loop in loops.around(call, facts.unit(call))):
        return Pace.BATCH
    if steps and all(isinstance(o, ast.Call) and _ON_METRIC in facts.called(o) for o in named.origins):
        return Pace.METRIC
    return Pace.EPOCH if steps else Pace.NEVER


def _measured(facts: Facts, program: Program, named: Named) -> list[ast.AST]:
    """The `len(training loader)` expressions that reach the scheduler's constructor, through names and parameters."""
    found: list[ast.AST] = []
    for origin in named.origins:
        if not isinstance(origin, ast.Call):
            continue
        waiting: list[tuple[ast.AST, Unit]] = [(given, facts.unit(origin)) for given in _given(origin)]
        seen: set[tuple[str, int]] = set()
        while waiting:
            node, unit = waiting.pop()
            found += [n for n in ast.walk(node) if _is_length(facts, program, n)]
            for name in reads(node):
                if (name, id(unit)) not in seen:
                    seen.add((name, id(unit)))
                    waiting += _sources(facts, name, unit)
    return found


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _sources(facts: Facts, name: str, unit: Unit) -> list[tuple[ast.AST, Unit]]:
    """The expressions that a name of a unit is given: by assignment, or by the callers."""
    found: list[tuple[ast.AST, Unit]] = [
        (binding.statement.value, unit)
        for binding in facts.bindings_in(unit)
        if binding.target == name and isinstance(binding.statement, ast.Assign)
    ]
    if isinstance(unit, Function) and name in unit.parameter_names:
        found += [(given, call.caller) for call in facts.callers(unit) for given in _given(call.node)]
    return found


def _is_length(facts: Facts, program: Program, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or "builtins.len" not in facts.called(node) or not node.args:
        return False
    values = facts.values(node.args[0])
    return Role.LOADER in roles(values) and bool(origins(values, Role.LOADER) & program.training_loaders)
