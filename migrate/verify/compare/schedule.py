"""E5: the learning rate of the original, after as many epochs or after as many samples.

It is looked at as the program is launched: what counts batches goes by the number of processes there, and would count
wrong where batches are cut. Only a schedule that follows a metric is compared with every step undone: another training
has another metric.
"""

from __future__ import annotations

from migrate.verify.compare.batches import Sharing, dealing
from migrate.verify.model import Contract, Difference, Outcome, Verdict, counted
from migrate.verify.records import Record, Step
from migrate.verify.run import Run, with_cuts

CLOSE = 1e-6  # relative


def same_schedule(alone: Run, frozen: Run, original: Run, launched: Run) -> Verdict:
    """E5, from two frozen runs, and from those of the original and the program as it is launched."""
    count = launched.processes
    if original.main.follows_metric:
        one, other = alone, frozen
        difference, after = _by_steps(one.main, other.main), "steps"
    else:
        one, other = original, launched
        is_dealt = dealing(one.main, other.records) is Sharing.DEALT
        difference, after = _by_samples(one.main, other.main, count if is_dealt else 1), "samples"
    if difference:
        message = f"after as many {after}, a step has another rate"
        return Verdict(Contract.E5, count, Outcome.FAIL, message, difference)
    compared = (one, other) if one.cut or other.cut else (one,)
    rates = min(({step.rates for step in run.main.steps} for run in compared), key=len)
    if len({rate for each in rates for rate in each}) < 2:
        message = "the learning rate does not change in these steps; more --steps may reach a change"
        return Verdict(Contract.E5, count, Outcome.NOT_CHECKED, with_cuts(message, one, other))
    message = f"{counted(len(rates), 'learning rate')}, the same after as many {after}"
    return Verdict(Contract.E5, count, Outcome.PASS, with_cuts(message, one, other))


def as_on_several(original: Run, converted: Run) -> bool:
    """Whether a program that goes by the number of processes does so as its original does on as many."""
    if original.has_failed or not original.main.steps:
        return False
    is_as_long = len(original.main.steps) == len(converted.main.steps) or original.cut or converted.cut
    return bool(is_as_long) and _by_steps(original.main, converted.main) is None


def _by_steps(one: Record, other: Record) -> Difference | None:
    for left, right in zip(one.steps, other.steps, strict=False):
        if left.optimizer == right.optimizer and not _is_close(left.rates, right.rates):
            return _difference(left, right)
    return None


def _by_samples(one: Record, other: Record, times: int) -> Difference | None:
    """Step i of a pass on N processes has used up i * N batches; a round that is not full counts as a whole one.

    Of several steps in one batch (a picture that comes in crops) the first counts.
    """
    known = _placed(one)
    for (optimizer, number, index), step in _placed(other).items():
        slack = (times - 1) * (number + 1)
        at = index * times
        near = [known[key] for i in range(at - slack, at + slack + 1) if (key := (optimizer, number, i)) in known]
        if (optimizer, number, at) not in known or not near:
            continue
        if not _is_between(step.rates, [each.rates for each in near]):
            return _difference(known[optimizer, number, at], step)
    return None


def _placed(record: Record) -> dict[tuple[int, int, int], Step]:
    """Steps by optimizer, by the number of the training pass, and by their number in it; of a batch the first."""
    counts: dict[tuple[int, int], int] = {}
    last: dict[int, tuple[int, int]] = {}
    placed = {}
    trained = {each: index for index, each in enumerate(record.trained)}
    for step in record.steps:
        number = trained.get(step.passes, -1)
        if step.batch >= 0 and last.get(step.optimizer) == (step.passes, step.batch):
            continue
        last[step.optimizer] = (step.passes, step.batch)
        index = counts.get((step.optimizer, number), 0)
        counts[step.optimizer, number] = index + 1
        placed[step.optimizer, number, index] = step
    return placed


def _is_between(rates: tuple[float, ...], others: list[tuple[float, ...]]) -> bool:
    if any(len(each) != len(rates) for each in others):
        return False
    for index, rate in enumerate(rates):
        low, high = min(each[index] for each in others), max(each[index] for each in others)
        if not low * (1 - CLOSE) <= rate <= high * (1 + CLOSE):
            return False
    return True


def _is_close(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    if len(one) != len(other):
        return False
    return all(abs(a - b) <= CLOSE * max(abs(a), abs(b)) for a, b in zip(one, other, strict=True))


def _difference(left: Step, right: Step) -> Difference:
    shown = [", ".join(f"{rate:.6g}" for rate in dict.fromkeys(step.rates)) for step in (left, right)]
    return Difference("learning rate", shown[0], shown[1], left.number - 1, left.place)
