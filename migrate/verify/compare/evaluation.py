"""E3: what is said after an evaluation does not depend on the number of processes, as long as nothing is learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from migrate.verify.compare.lines import Said, Volatile, is_close, is_multiple, said
from migrate.verify.model import Contract, Difference, Outcome, Verdict, counted
from migrate.verify.records import Record
from migrate.verify.run import Run


@dataclass(frozen=True, slots=True)
class Place:
    """A number in what is said."""

    line: int  # index in the lines after an evaluation
    number: int


def exact_evaluation(alone: Run, several: Run, volatile: Volatile, other_data: Callable[[], Run | None]) -> Verdict:
    """E3, from two frozen runs.

    Args:
        volatile: numbers that say nothing.
        other_data: runs the original frozen once more, on other training batches: a number that changes then is one
            about the training, of which each process has a share. It is asked for only if a number differs.
    """
    count = several.processes
    lines = after_evaluation(alone.main)
    if not lines:
        return Verdict(Contract.E3, count, Outcome.NOT_CHECKED, _nothing(alone.main))
    if _has_learned(alone.main):
        message = "parameters change though every step is undone: something beside the optimizer changes them"
        return Verdict(Contract.E3, count, Outcome.NOT_CHECKED, message)
    theirs = aligned(lines, said(several.main))
    if isinstance(theirs, int):
        if several.end.how == "time" or alone.end.how == "time":
            lines = lines[:theirs]
            theirs = aligned(lines, said(several.main))
        else:
            missing = lines[theirs].line
            difference = Difference("line", repr(missing.text), "nothing", place=missing.place)
            return Verdict(Contract.E3, count, Outcome.FAIL, "a line after an evaluation is missing", difference)
    assert not isinstance(theirs, int)
    return _numbers(lines, theirs, volatile, other_data, count)


def _numbers(
    lines: list[Said], theirs: list[Said], volatile: Volatile, other_data: Callable[[], Run | None], count: int
) -> Verdict:
    numbers = [Place(i, j) for i, line in enumerate(lines) for j in range(len(line.numbers))]
    numbers = [place for place in numbers if not volatile.covers(lines[place.line], place.number)]
    wrong = [place for place in numbers if not is_close(_text(lines, place), _text(theirs, place))]
    of_training: set[Place] = set()
    if wrong and (run := other_data()) is not None:
        of_training = changed(lines, run.main, wrong)
    if left := [place for place in wrong if place not in of_training]:
        return Verdict(
            Contract.E3, count, Outcome.FAIL, "an evaluation says something else", _shown(lines, theirs, left[0])
        )
    equal = len(numbers) - len(wrong)
    about = f"; {len(of_training)} are about the training, where each process tells its share" if of_training else ""
    if not equal:
        return Verdict(Contract.E3, count, Outcome.NOT_CHECKED, f"no number is about an evaluation alone{about}")
    message = f"{counted(equal, 'number')} in {counted(len(lines), 'line')} after evaluations agree{about}"
    return Verdict(Contract.E3, count, Outcome.PASS, message)


def joined_too_often(alone: Run, several: Run, volatile: Volatile) -> Verdict | None:
    """E3 for what is said of a training, from two frozen runs as they are launched; None if nothing is wrong.

    Each process tells its share, or all tell what they have joined; which of the two is meant cannot be known. But what
    is just so many times as large as there are processes is no share of anything: it was added up where it was to be
    averaged, or each had all of it.
    """
    times = several.processes
    for one, other in in_turn(said(alone.main), said(several.main)):
        for number, (left, right) in enumerate(zip(one.numbers, other.numbers, strict=True)):
            if not volatile.covers(one, number) and is_multiple(left, right, times):
                difference = Difference("line", repr(one.line.text), repr(other.line.text), place=one.line.place)
                message = f"a number is {times} times as large, as if each process had all of it"
                return Verdict(Contract.E3, times, Outcome.FAIL, message, difference)
    return None


def in_turn(lines: Sequence[Said], theirs: Sequence[Said]) -> list[tuple[Said, Said]]:
    """Lines of one text that are said as often by both, in pairs."""
    both: dict[str, tuple[list[Said], list[Said]]] = {}
    for side, some in enumerate((lines, theirs)):
        for line in some:
            both.setdefault(line.template, ([], []))[side].append(line)
    pairs = (zip(*sides, strict=True) for sides in both.values() if len(sides[0]) == len(sides[1]))
    return [pair for some in pairs for pair in some]


def after_evaluation(record: Record) -> list[Said]:
    """Lines with numbers that were said when the last batches had not been trained on."""
    return [each for each in said(record) if record.is_after_evaluation(each.line) and each.numbers]


def aligned(lines: Sequence[Said], all_theirs: Sequence[Said]) -> list[Said] | int:
    """For each line the one of the same text in what another run says, in order; or the index of the first without."""
    found: list[Said] = []
    at = 0
    for index, line in enumerate(lines):
        while at < len(all_theirs) and all_theirs[at].template != line.template:
            at += 1
        if at == len(all_theirs):
            return index
        found.append(all_theirs[at])
        at += 1
    return found


def changed(lines: Sequence[Said], record: Record, places: Sequence[Place]) -> set[Place]:
    """The places whose numbers are others in a run on other training batches."""
    theirs = aligned(lines, said(record))
    if isinstance(theirs, int):
        return set()
    return {place for place in places if _text(lines, place) != _text(theirs, place)}


def _text(lines: Sequence[Said], place: Place) -> str:
    return lines[place.line].numbers[place.number]


def _has_learned(record: Record) -> bool:
    seen: dict[int, int] = {}
    return any(seen.setdefault(step.optimizer, step.parameters) != step.parameters for step in record.steps)


def _nothing(record: Record) -> str:
    trained = set(record.trained)
    if any(batch.passes not in trained for batch in record.batches):
        return "there is an evaluation, but no number is printed or logged after it"
    return "no evaluation over a loader was reached; more --steps may reach one"


def _shown(lines: Sequence[Said], theirs: Sequence[Said], place: Place) -> Difference:
    one, other = _text(lines, place), _text(theirs, place)
    line = lines[place.line].line
    size = abs(float(one) - float(other))
    return Difference("line", repr(line.text), repr(theirs[place.line].line.text), place=line.place, size=size)
