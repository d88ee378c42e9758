"""Learning rates that a program sets by a count of batches (contract E5): by hand, or by what it tells a scheduler.

`param_group["lr"] = base * (1 - step / most) ** 0.9`, `scheduler.step(epoch + i / len(loader))`. N processes take N
batches in one step. Where the count and the horizon are both counts of steps the rate is right as it is; where the
horizon is a number of batches, the count is multiplied by the number of processes. A program that distributes itself
has counted the steps of its processes before: there numbers stay, and lengths that are measured before prepare do not.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, origins
from migrate.analysis.syntax import arguments, targets_of, walk
from migrate.analysis.units import Function
from migrate.programs.program import Refusal
from migrate.programs.schedule.ends import ends, is_for_either
from migrate.programs.schedule.epoch_ends import is_of_all, waited_for
from migrate.programs.schedule.groups import is_scheduled
from migrate.programs.schedule.own_optimizers import scheduled_within
from migrate.programs.schedule.own_steps import goes_on
from migrate.programs.schedule.paces import stepped_at_both
from migrate.programs.schedule.passed_by import tests_passed_by
from migrate.programs.schedule.schedulers import Horizon, Pace, counts_given, made_with, per_batch, steps_of
from migrate.programs.stages import NoPlace, Stages
from migrate.programs.values.content import made_from
from migrate.programs.values.counts import Counts, Meeting, Met
from migrate.programs.values.lengths import Moments, lengths
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program
    from migrate.programs.schedule.schedulers import Schedule

_BY_SAMPLES = (
    "set the rate once per epoch, or by a scheduler of PyTorch that is stepped per batch (LambdaLR, MultiStepLR, "
    "ExponentialLR), which is prepared and counts the batches of all processes"
)
_WITHIN = "the optimizer itself sets the rate by how many of `{}` steps it has taken, each of N batches on N processes"
#: Why a count cannot simply be multiplied where it meets these.
_UNCLEAR = {
    Met.MOMENT: "waits for a certain batch, which N processes reach N times as late",
    Met.SHARE: "divides by a count of steps, each of which is N batches on N processes",
}


class EitherWay(NoPlace):
    """A schedule is made for steps, or for lengths that are measured before prepare."""

    def __init__(self, refusal: Refusal, measured: tuple[ast.Call, ...]) -> None:
        super().__init__(refusal)
        self.measured = measured


@dataclass(frozen=True, slots=True)
class Rates:
    """The counts that must be multiplied by the number of processes, and what cannot be said so."""

    scaled: tuple[ast.expr, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    by_steps: tuple[ast.expr, ...] = ()  # what goes by the steps after which the training ends
    turns: tuple[ast.BinOp, ...] = ()  # `step % 100` where what is multiplied may pass the batch that is waited for


def rates(
    facts: Facts, loops: Loops, program: Program, units: Collection[Unit], planned: Sequence[Schedule], stages: Stages
) -> Rates:
    """What becomes of the rates that are set by a count."""
    moments = Moments(facts, program, stages)
    counts = Counts(facts, loops, program, moments)
    written = sorted(_written(facts, program, units), key=lambda n: n.lineno)
    ended = ends(facts, loops, program, moments, (*written, *(call for each in planned for call in each.steps)))
    refused = list(_shortened_below(facts, loops, program, units, moments))
    if program.handed is None and not ended:
        refused += _made_in_steps(facts, counts, program, units)
    for node in written:
        if program.handed is None and not ended and goes_on(facts, counts, node):
            refused.append(_refusal(node, "changes the rate by a step of its own at every batch"))
        elif counts.is_per_batch(node) and _is_of_own_batch(facts, program, node.value):
            refused.append(_by_own_batch(node.value, "rate is set"))
        else:
            counts.used(node.value)
            _conditions(counts, node, units)
    for made in _made_anew(facts, program, units):
        if counts.is_per_batch(made):
            _conditions(counts, made, units)
    for told, measured in _told(facts, program, units, planned):
        if origins(facts.values(told), *FROM_LOADER) & program.training_loaders:
            refused.append(_by_own_batch(told, "scheduler steps"))
        else:
            counts.used(told, measured)
    refused += _waiting(facts, loops, program, planned, moments)
    refused += stepped_at_both(facts, loops, program, counted_in_batches(facts, loops, program, planned, stages))
    within = list(scheduled_within(facts, program, moments))
    if program.handed is None and not ended and program.training_loaders:
        refused += [_refusal(made, _WITHIN.format(ast.unparse(given))) for made, given in within]
    if not refused and not ended:
        return _decided(counts, _by_processes(counts, planned))
    going = [m.node for m in counts.meetings if m.met is not Met.STEPS]
    by_steps = () if program.handed is not None else (*going, *(given for _, given in within))
    return Rates(refusals=tuple(refused), by_steps=by_steps)


def _by_processes(counts: Counts, planned: Sequence[Schedule]) -> list[Meeting]:
    """The meetings in which a count must go by the number of processes.

    A program that distributes itself counts the steps of its processes already, all the more where they divide a batch.
    Only lengths measured before prepare are longer than those that it has measured.
    """
    handed = counts.program.handed
    if handed is None or any(False in counts.moments.after(length) for s in planned for length in s.measured):
        return counts.meetings
    return [] if handed.splits else [m for m in counts.meetings if m.met is Met.STEPS or counts.is_early(m.node)]


def _decided(counts: Counts, meetings: Sequence[Meeting]) -> Rates:
    unclear = next((meeting for meeting in meetings if meeting.met in _UNCLEAR), None)
    found = (c for meeting in meetings if meeting.met is Met.NUMBER for c in meeting.carriers)
    scaled = {carrier: None for carrier in found if _counts_training(counts, carrier)}
    kept = {inner for m in meetings if m.met is Met.STEPS for c in m.carriers for inner in walk(c)}
    if unclear is not None:
        what = f"`{ast.unparse(unclear.node)}` {_UNCLEAR[unclear.met]}"
        return Rates(refusals=(_refusal(unclear.node, what),))
    for carrier in scaled:
        if any(inner in kept for inner in walk(carrier)):
            what = f"`{ast.unparse(carrier)}` is set against the length of a loader here and a plain number there"
            return Rates(refusals=(_refusal(carrier, what),))
    multiplied = tuple(_outermost(scaled))
    turns, refusals = tests_passed_by(counts.facts, multiplied)
    return Rates(refusals=tuple(refusals)) if refusals else Rates(multiplied, turns=tuple(turns))


def _counts_training(counts: Counts, carrier: ast.expr) -> bool:
    """Whether a count may be that of the training: not in the home, in a loop beside it, as a schedule is drawn."""
    if counts.facts.unit(carrier) is not counts.program.home:
        return True
    around = list(counts.facts.tree(carrier).loops(carrier))
    return not around or counts.loops.trains(around[-1])


def _outermost(carriers: Collection[ast.expr]) -> Iterator[ast.expr]:
    """Without those that stand inside of another one."""
    for carrier in carriers:
        if not any(other is not carrier and carrier in set(walk(other)) for other in carriers):
            yield carrier


def _refusal(node: ast.AST, what: str) -> Refusal:
    why = f"the learning rate goes by a count of batches that cannot be told for N processes: {what}"
    return Refusal(node, "MIG118", why, _BY_SAMPLES)


def _is_of_own_batch(facts: Facts, program: Program, value: ast.expr) -> bool:
    """Whether a number is made from a process's own batch, or chosen by it, here or where its name got it."""
    sources = facts.once(Sources)
    given = (e for node in walk(value) if isinstance(node, ast.Name) for e in sources.given(node).expressions)
    return any(made_from(facts, program.training_loaders, each) for each in (value, *given))


def _by_own_batch(node: ast.expr, what: str) -> Refusal:
    why = f"the {what} by `{ast.unparse(node)}`, which differs between processes: they would part ways"
    return Refusal(node, "MIG122", why, "do it by a number of the whole epoch, after the loop over the batches")


def _written(facts: Facts, program: Program, units: Collection[Unit]) -> Iterator[ast.Assign | ast.AugAssign]:
    """Statements that set the rate, or something else that is scheduled, in a group of parameters."""
    for unit in units:
        for node in facts.own(unit):
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                if any(is_scheduled(facts, program, target) for target in targets_of(node)):
                    yield node


def _waiting(
    facts: Facts, loops: Loops, program: Program, planned: Sequence[Schedule], moments: Moments
) -> Iterator[Refusal]:
    """The steps of schedulers that wait for a batch by a number of all; one that goes by a metric is told it late."""
    by_count = (schedule for schedule in planned if schedule.pace is not Pace.METRIC)
    for call in (call for schedule in by_count for call in schedule.steps):
        for length in waited_for(facts, loops, program, call):
            if is_of_all(facts, program, moments, length):
                what = f"`{ast.unparse(call)}` waits for a batch by `{ast.unparse(length)}`"
                yield _refusal(call, f"{what}, to which N processes come N times as late, or never")
                break


def _made_anew(facts: Facts, program: Program, units: Collection[Unit]) -> Iterator[ast.AST]:
    """Where optimizers are made: one with another rate takes the place of the first."""
    made = (facts.source(origin) for named in program.optimizers for origin in named.origins)
    return (node for node in made if facts.unit(node) in units)


def _made_in_steps(facts: Facts, counts: Counts, program: Program, units: Collection[Unit]) -> Iterator[Refusal]:
    """Why a program is left that makes a scheduler for each batch: it is a function of what it is made with by then."""
    for use in facts.calls:
        if use.unit in units and use.node in origins(facts.values(use.node), Role.SCHEDULER):
            if program.training_loaders and counts.is_per_batch(use.node):
                yield _refusal(use.node, "a scheduler is made anew here for each batch")


def _conditions(counts: Counts, node: ast.AST, units: Collection[Unit], depth: int = 4) -> None:
    """Look at the tests under which a statement is reached, also around the calls of its function."""
    counts.tests(node)
    unit = counts.facts.unit(node)
    if not depth or not isinstance(unit, Function):
        return
    for call in counts.facts.callers(unit):
        if call.caller in units:
            _conditions(counts, call.node, units, depth - 1)


def _told(
    facts: Facts, program: Program, units: Collection[Unit], planned: Sequence[Schedule]
) -> Iterator[tuple[ast.expr, Sequence[ast.Call]]]:
    """What schedulers are told when they step (an epoch, a part of one, a number of updates), and their lengths."""
    for schedule in planned:
        for call in schedule.steps:
            if call not in schedule.on_metric:
                for told in arguments(call):
                    yield told, schedule.measured
    sources = facts.once(Sources)
    for use in facts.method_calls("step_update"):
        if use.unit in units and isinstance(use.node.func, ast.Attribute):
            made = sources.behind(sources.given(use.node.func.value).expressions)
            measured = [length for node in made for length in lengths(facts, program, node)]
            for told in arguments(use.node):
                yield told, measured


def counted_in_batches(
    facts: Facts, loops: Loops, program: Program, planned: Sequence[Schedule], stages: Stages
) -> list[Schedule]:
    """The schedulers that are stepped per batch and made for a number of one process's batches.

    Raises:
        EitherWay: the horizon may be that, and may be the number of steps after which the training ends.
    """
    moments = Moments(facts, program, stages)
    found = []
    for schedule in (each for each in planned if each.pace is Pace.BATCH):
        ended = ends(facts, loops, program, moments, schedule.steps)
        if is_for_either(facts, schedule, ended, moments):
            raise EitherWay(_either(facts, schedule), schedule.measured)
        is_early = any(False in moments.after(length) for length in schedule.measured)
        if is_early or (schedule.horizon is Horizon.ABSOLUTE and not ended and program.handed is None):
            found.append(schedule)
    return found


def measured_for_epochs(facts: Facts, program: Program, planned: Sequence[Schedule], stages: Stages) -> list[Schedule]:
    """The schedulers that are stepped per epoch, and made for a length that prepare divides by the processes."""
    moments = Moments(facts, program, stages)
    by_epoch = (schedule for schedule in planned if schedule.pace is Pace.EPOCH)
    return [each for each in by_epoch if any(True in moments.after(length) for length in each.measured)]


def measured_beside_numbers(
    facts: Facts, program: Program, planned: Sequence[Schedule], stages: Stages
) -> list[Schedule]:
    """The schedulers that are stepped per batch, made for a length below prepare, and for a plain number beside it.

    `warmup(optimizer, 100, epochs * len(loader))`: N processes would warm up for N times as many samples.
    """
    moments = Moments(facts, program, stages)
    by_batch = (each for each in planned if each.pace is Pace.BATCH and each.measured and each.named.unit is None)
    late = (each for each in by_batch if all(False not in moments.after(length) for length in each.measured))
    return [each for each in late if any(is_plain_count(facts, program, given) for given in counts_given(facts, each))]


def is_plain_count(facts: Facts, program: Program, given: ast.expr) -> bool:
    """Whether a count does not come from the length of a loader; none, 0, lasts as long on any number of processes."""
    if isinstance(given, ast.Constant):
        return isinstance(given.value, int) and given.value > 0
    behind = facts.once(Sources).behind([given])
    return not any(True for node in (given, *behind) for _ in lengths(facts, program, node))


def shortened(made: ast.AST) -> Refusal:
    """Why a program is left whose scheduler would come to its end after fewer epochs."""
    why = "this is stepped per epoch, and made for the length of a loader, which prepare divides by the processes"
    return Refusal(made, "MIG118", why, "make it for a number of epochs")


def _shortened_below(
    facts: Facts, loops: Loops, program: Program, units: Collection[Unit], moments: Moments
) -> Iterator[Refusal]:
    """The same for schedulers that functions make which are called after prepare."""
    at_home = {origin for named in program.schedulers for origin in named.origins}
    for use in facts.calls:
        if use.unit not in units or use.node not in origins(facts.values(use.node), Role.SCHEDULER) - at_home:
            continue
        steps = list(steps_of(facts, [use.node]))
        if not steps or per_batch(facts, loops, program, steps):
            continue
        measured = (length for node in made_with(facts, [use.node]) for length in lengths(facts, program, node))
        if any(True in moments.after(length) for length in measured):
            yield shortened(use.node)


def _either(facts: Facts, schedule: Schedule) -> Refusal:
    target = schedule.named.target
    why = f"{target} is made for a number of steps, or for a length measured before prepare: only one can be right"
    way_out = f"make the loader, the model and the optimizer first, and measure the length for {target} after them"
    return Refusal(schedule.named.place(facts), "MIG118", why, way_out)
