"""Metric objects of libraries that join the processes by themselves, and what feeds them.

`compute()` of torchmetrics adds up what every process has been given. That is right for what a training loop feeds, and
counts everything N times in an evaluation, where every process sees the whole data set.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import arguments
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.outsiders import units_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops

_SYNCING = "torchmetrics."
_COLLECTION = "MetricCollection"
_FEEDING = frozenset({"update", "forward"})
OPTION = "sync_on_compute"


@dataclass(frozen=True, slots=True)
class MetricObject:
    """Where a metric is made, and by which kinds of loops it is fed."""

    made: ast.Call
    in_training: bool
    in_evaluation: bool

    @property
    def syncs_by_itself(self) -> bool:
        """Whether its constructor leaves the joining to it."""
        return not any(keyword.arg in (OPTION, None) for keyword in self.made.keywords)


def metric_objects(facts: Facts, loops: Loops, program: Program, units: Collection[Unit]) -> tuple[MetricObject, ...]:
    """The metrics of torchmetrics that some units feed, in source order."""
    training = {loop.node for loop in program.training}
    fed: dict[ast.Call, set[bool]] = {}
    for use in facts.calls:
        if use.unit in units:
            for made in _fed(facts, use):
                around = set(loops.around(use.node, use.unit))
                fed.setdefault(made, set()).add(bool(around & training))
    made_in_order = sorted(fed, key=lambda call: (facts.file(call).path, call.lineno, call.col_offset))
    return tuple(MetricObject(made, True in fed[made], False in fed[made]) for made in made_in_order)


def twice_joined(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Metrics of which nothing that is said in their constructor is right."""
    units = units_of(facts, program) if program.home is not None else ()
    for metric in metric_objects(facts, loops, program, units):
        if not metric.in_evaluation or not metric.syncs_by_itself:
            continue
        if metric.in_training:
            why = "training and evaluation feed this metric: joined over the processes, one would be counted wrongly"
            yield Refusal(metric.made, "MIG124", why, "make a second metric for the evaluation")
        elif not facts.file(metric.made).named:
            why = "this metric joins the processes by itself, and it is made in a file that was not named"
            yield Refusal(metric.made, "MIG124", why, f"name the file too, or make the metric with {OPTION}=False")


def _fed(facts: Facts, use: Use) -> Iterator[ast.Call]:
    """The constructors of what a call feeds: `metric.update(...)`, `metric(...)`; of a collection, its parts."""
    feeds = isinstance(use.node.func, ast.Attribute) and use.node.func.attr in _FEEDING
    for value in facts.receiver(use.node) if feeds else facts.values(use.node.func):
        if value.role is Role.METRIC and value.name.startswith(_SYNCING) and isinstance(value.origin, ast.Call):
            yield from _parts(facts, value.origin) if value.name.endswith(_COLLECTION) else (value.origin,)


def _parts(facts: Facts, collection: ast.Call) -> Iterator[ast.Call]:
    given = arguments(collection)
    for node in (inner for argument in given for inner in ast.walk(argument) if isinstance(inner, ast.expr)):
        for value in facts.values(node):
            if value.role is Role.METRIC and isinstance(value.origin, ast.Call):
                yield value.origin
