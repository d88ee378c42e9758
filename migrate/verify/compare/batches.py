"""E2: with the global batch kept, N processes train on the samples of one, batch by batch, with the same gradient."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import Enum

from migrate.verify.compare.numbers import is_near
from migrate.verify.model import Contract, Difference, Outcome, Verdict, counted
from migrate.verify.records import Batch, Record, Step
from migrate.verify.run import Run, with_cuts

CLOSE = {"float64": 1e-6, "float32": 1e-3}  # of the gradient's norm; floats are added in another order
CLOSE_HALF = 5e-2  # float16 and bfloat16
STEPS = "number of optimizer steps"
NO_STEP = "no optimizer step was seen"
NOTHING = 1e-6  # a gradient that is shorter is zero, and its direction is chance


class Sharing(Enum):
    """How the batches of one process come to N."""

    SHARED = "each process has a part of each batch"
    WHOLE = "each process has all samples"
    DEALT = "each process has every N-th batch"
    OTHER = "the samples are others"
    UNKNOWN = "the samples cannot be told"


@dataclass(frozen=True, slots=True)
class Samples:
    """How training batches of N processes compare with those of one."""

    sharing: Sharing
    count: int = 0  # batches that were compared
    is_drawn: bool = False  # the same samples with other content: the data set draws
    where: str = ""


def samples(alone: Record, records: tuple[Record, ...]) -> Samples:
    """For a run that keeps the global batch."""
    passes = zip(alone.trains_in(), *(record.trains_in() for record in records), strict=False)
    sharings: set[Sharing] = set()
    count, is_drawn = 0, False
    for number, (ones, *others) in enumerate(passes):
        for one, *parts in zip(ones, *others, strict=False):
            sharing, drawn = _batch(one, parts)
            if sharing in {Sharing.OTHER, Sharing.UNKNOWN}:
                return Samples(sharing, count, where=f"batch {one.number} of pass {number}")
            sharings.add(sharing)
            is_drawn |= drawn
            count += 1
    if not count:
        return Samples(Sharing.UNKNOWN, where="no batch of a loader was trained on")
    return Samples(Sharing.SHARED if Sharing.SHARED in sharings else Sharing.WHOLE, count, is_drawn)


def dealing(alone: Record, records: tuple[Record, ...]) -> Sharing:
    """For a run as it is launched: whether batches are dealt out. The first pass decides, later ones may draw."""
    first, *others = (next(record.trains_in(), []) for record in (alone, *records))
    if not first or not all(others):
        return Sharing.UNKNOWN
    keys = [_key(batches[0]) for batches in others]
    if not all(keys):
        return Sharing.UNKNOWN
    if all(key == keys[0] for key in keys):
        return Sharing.WHOLE
    sharing, _ = _batch(first[0], [batches[0] for batches in others])
    return sharing if sharing is Sharing.SHARED else Sharing.DEALT


def _batch(one: Batch, parts: list[Batch]) -> tuple[Sharing, bool]:
    by_index = one.indices and all(part.indices or not part.rows for part in parts)
    by_sum = one.sums and all(part.sums or not part.rows for part in parts)
    sharing = Sharing.UNKNOWN
    if by_sum:
        sharing = _sharing(one.sums, [part.sums for part in parts])
    if sharing in {Sharing.SHARED, Sharing.WHOLE} or not by_index:
        return sharing, False
    if by_sum and not _may_differ(one, parts):
        return Sharing.OTHER, False
    return _sharing(one.indices, [part.indices for part in parts]), bool(by_sum)


def _may_differ(one: Batch, parts: list[Batch]) -> bool:
    """Whether samples of one index may be others: they are drawn, or filled up to the longest of the batch."""
    return any(each.draws or (each.rows and each.width != one.width) for each in (one, *parts))


def _sharing(whole: tuple[int, ...], parts: list[tuple[int, ...]]) -> Sharing:
    if sum((Counter(part) for part in parts), Counter()) == Counter(whole):
        return Sharing.SHARED
    if all(Counter(part) == Counter(whole) for part in parts):
        return Sharing.WHOLE
    return Sharing.OTHER


def _key(batch: Batch) -> tuple[int, ...]:
    return batch.indices or batch.sums


def _in_turn(alone: Record, records: tuple[Record, ...]) -> str:
    """Where dealt batches are not those of one process in turn, in the first pass: later ones may draw."""
    ones = next(alone.trains_in(), [])
    for rank, record in enumerate(records):
        for number, batch in enumerate(next(record.trains_in(), [])):
            at = number * len(records) + rank
            if at >= len(ones) or not ones[at].indices or not batch.indices:
                continue
            if batch.indices[: len(ones[at].indices)] != ones[at].indices:  # the last round is completed
                return f"batch {at} of the first pass, the one with number {number} on process {rank}"
    return ""


def same_batches(alone: Run, several: Run, original: Run, launched: Run, *, keeps_order: bool = True) -> Verdict:
    """E2, from two frozen runs: no step has changed the parameters, so the gradients of all steps can be compared.

    The order of the data is also that of the runs in which nothing is undone. `keeps_order` is False for a package that
    draws another one for several processes.
    """
    count = several.processes
    if not alone.main.steps or (several.cut and not several.main.steps):
        return Verdict(Contract.E2, count, Outcome.NOT_CHECKED, with_cuts(NO_STEP, alone, several))
    found = samples(alone.main, several.records)
    if found.sharing is Sharing.OTHER and not keeps_order:
        message = "the package draws the order of a shuffled loader anew for several processes"
        return Verdict(Contract.E2, count, Outcome.NOT_CHECKED, message)
    if found.sharing is Sharing.OTHER:
        message = f"the processes together do not have the samples of one: {found.where}"
        return Verdict(Contract.E2, count, Outcome.FAIL, message)
    is_dealt = keeps_order and dealing(original.main, launched.records) is Sharing.DEALT
    if is_dealt and (where := _in_turn(original.main, launched.records)):
        message = f"the order of the data depends on the number of processes: {where}"
        return Verdict(Contract.E2, count, Outcome.FAIL, message)
    if lengths := _lengths(alone, several):
        return Verdict(Contract.E2, count, Outcome.FAIL, "the processes do not take the steps of one", lengths)
    told = _told(found)
    if reason := _incomparable(alone.main, found):
        outcome = Outcome.NOT_CHECKED if found.sharing is Sharing.UNKNOWN else Outcome.PASS
        return Verdict(Contract.E2, count, outcome, f"{told}; gradients are not compared: {reason}")
    pairs = list(zip(alone.main.steps, several.main.steps, strict=False))
    for one, other in pairs:
        if difference := _gradient(one, other):
            return Verdict(Contract.E2, count, Outcome.FAIL, f"{told}, but the gradient is not that of one", difference)
    message = with_cuts(f"{told}; {counted(len(pairs), 'gradient')} agree", alone, several)
    return Verdict(Contract.E2, count, Outcome.PASS, message)


def _told(found: Samples) -> str:
    if found.sharing is Sharing.UNKNOWN:
        return f"which samples are trained on cannot be told ({found.where})"
    how = "shared out" if found.sharing is Sharing.SHARED else "whole on each process"
    return f"the samples of {counted(found.count, 'batch', 'es')} are the same, {how}"


def _lengths(alone: Run, several: Run) -> Difference | None:
    counts = [len(run.main.steps) for run in (alone, several)]
    if counts[0] == counts[1] or alone.cut or several.cut:
        return None
    return Difference(STEPS, str(counts[0]), str(counts[1]))


def _incomparable(alone: Record, found: Samples) -> str:
    """Why the gradient of one process is not that of several, though nothing is wrong."""
    if found.is_drawn:
        return "the data set draws random numbers for each sample"
    if layers := sorted(alone.unsteady):
        return f"{layers[0]} goes by the batch that it sees"
    if any(step.draws for step in alone.steps):
        return "the step draws random numbers"
    if any(step.gradient is None for step in alone.steps):
        return "parameters have none when the optimizer steps"
    return ""


def _gradient(one: Step, other: Step) -> Difference | None:
    if one.gradient is None or other.gradient is None or one.optimizer != other.optimizer:
        return Difference("gradient", str(one.gradient), str(other.gradient), one.number - 1, one.place)
    close = max((CLOSE.get(kind, CLOSE_HALF) for kind in one.types), default=CLOSE_HALF)
    length = max(one.gradient[0], other.gradient[0])
    for what, left, right in zip(("norm", "direction"), one.gradient, other.gradient, strict=True):
        if not is_near(left, right, close * length + NOTHING):
            shown = (f"{left:.6g}", f"{right:.6g}")
            size = abs(left - right) if math.isfinite(left - right) else None
            return Difference(f"{what} of the gradient", *shown, one.number - 1, one.place, size)
    return None


def same_ranks(several: Run) -> Verdict:
    """Whether all processes have the same parameters after each step."""
    first, *others = several.records
    for rank, record in enumerate(others, start=1):
        for one, other in zip(first.steps, record.steps, strict=False):
            if one.parameters != other.parameters:
                shown = (f"{one.size:.9g} on process 0", f"{other.size:.9g} on process {rank}")
                return _apart(several, "parameters", f"{shown[0]}, {shown[1]}", one)
        if len(record.steps) != len(first.steps) and not (record.end.is_cut or first.end.is_cut):
            counts = f"{len(first.steps)} on process 0, {len(record.steps)} on process {rank}"
            return _apart(several, "number of steps", counts, None)
    count = min(len(record.steps) for record in several.records)
    if not count:
        return Verdict(Contract.RANKS, several.processes, Outcome.NOT_CHECKED, with_cuts(NO_STEP, several))
    message = with_cuts(f"{counted(count, 'step')}, the same bits on all", several)
    return Verdict(Contract.RANKS, several.processes, Outcome.PASS, message)


def _apart(several: Run, what: str, shown: str, step: Step | None) -> Verdict:
    at = f" after step {step.number - 1} ({step.place})" if step else ""
    message = f"the processes part: {what}{at}: {shown}"
    return Verdict(Contract.RANKS, several.processes, Outcome.FAIL, message)
