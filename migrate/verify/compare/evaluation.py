"""E3: what is said after an evaluation does not depend on the number of processes, as long as nothing is learned."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from migrate.verify.compare.lines import Said, Volatile, is_close, is_multiple, may_be_multiple, said
from migrate.verify.model import Contract, Difference, Outcome, Verdict, counted
from migrate.verify.records import Line, Record
from migrate.verify.run import Run, with_cuts


@dataclass(frozen=True, slots=True)
class Number:
    """A number that two runs say after an evaluation."""

    line: int  # which of the lines after an evaluation
    index: int  # which of the numbers in it
    one: Said
    other: Said

    @property
    def texts(self) -> tuple[str, str]:
        """What both say."""
        return self.one.numbers[self.index], self.other.numbers[self.index]


def exact_evaluation(alone: Run, several: Run, volatile: Volatile, other_data: Callable[[], Run | None]) -> Verdict:
    """E3, from two frozen runs. Where one was cut, what both came to is compared.

    Args:
        volatile: numbers that say nothing.
        other_data: runs the original frozen once more, on other training batches: a number that changes then is one
            about the training, of which each process has a share. It is asked for only if a number differs.
    """
    count = several.processes
    lines = after_evaluation(alone.main)
    if not lines:
        return Verdict(Contract.E3, count, Outcome.NOT_CHECKED, with_cuts(_nothing(alone.main), alone))
    if _has_learned(alone.main):
        message = "parameters change though every step is undone: something beside the optimizer changes them"
        return Verdict(Contract.E3, count, Outcome.NOT_CHECKED, message)
    theirs = counterparts(alone.main, several.main)
    missing = None if alone.cut or several.cut else _missing(alone.main, lines, theirs)
    if missing is not None:
        difference = Difference("line", repr(missing.text), "nothing", place=missing.place)
        return Verdict(Contract.E3, count, Outcome.FAIL, "a line after an evaluation is missing", difference)
    if not any(theirs):
        message = with_cuts("no line after an evaluation was said by both", alone, several)
        return Verdict(Contract.E3, count, Outcome.NOT_CHECKED, message)
    numbers = [number for number in _numbers(lines, theirs) if not volatile.covers(number.one, number.index)]
    wrong = [number for number in numbers if not is_close(*number.texts)]
    if wrong and (verdict := _unequal(wrong, alone.main, other_data(), count)):
        return verdict
    counting = _counting(lines) | _counting(after_evaluation(several.main))
    equal = [each for each in numbers if is_close(*each.texts) and each.one.template not in counting]
    outcome, message = _equal(equal, len(wrong))
    return Verdict(Contract.E3, count, outcome, with_cuts(message, alone, several))


def _missing(alone: Record, lines: Sequence[Said], theirs: Sequence[Said | None]) -> Line | None:
    """The first line that the other run does not say, but for those of evaluations after so many steps.

    N processes take fewer steps in an epoch, and so evaluate less often in one.
    """
    by_steps = {each.template for each in lines if alone.is_amid_training(each.line)}
    pairs = zip(lines, theirs, strict=True)
    return next((one.line for one, other in pairs if other is None and one.template not in by_steps), None)


def _numbers(lines: Sequence[Said], theirs: Sequence[Said | None]) -> Iterator[Number]:
    for line, (one, other) in enumerate(zip(lines, theirs, strict=True)):
        if other is not None:
            yield from (Number(line, index, one, other) for index in range(len(one.numbers)))


def _unequal(wrong: Sequence[Number], alone: Record, other: Run | None, count: int) -> Verdict | None:
    """What follows from numbers that differ; None if all are about the training, as a run on other data shows."""
    lines = counterparts(alone, other.main) if other else [None] * (wrong[-1].line + 1)
    left = [each for each in wrong if (line := lines[each.line]) is None or line.numbers[each.index] == each.texts[0]]
    reached = [each for each in left if other is None or not other.cut or lines[each.line] is not None]
    if reached:
        return Verdict(Contract.E3, count, Outcome.FAIL, "an evaluation says something else", _shown(reached[0]))
    if other is not None and left:
        message = "a number differs, and nothing says whether it is about an evaluation"
        return Verdict(Contract.E3, count, Outcome.NOT_CHECKED, with_cuts(message, other))
    return None


def _equal(numbers: Sequence[Number], of_training: int) -> tuple[Outcome, str]:
    """What follows from numbers that agree, where all others are about the training."""
    about = f"; {of_training} are about the training, where each process tells its share" if of_training else ""
    if not numbers:
        return Outcome.NOT_CHECKED, f"no number is about an evaluation alone{about}"
    lines = len({number.line for number in numbers})
    return Outcome.PASS, f"{counted(len(numbers), 'number')} in {counted(lines, 'line')} after evaluations agree{about}"


def _counting(lines: Sequence[Said]) -> set[str]:
    """The texts that do nothing but count how often they were said, such as `Epoch: 3`: no evaluation gave that."""
    said_by: dict[str, list[tuple[str, ...]]] = {}
    for line in lines:
        said_by.setdefault(line.template, []).append(line.numbers)
    return {text for text, rows in said_by.items() if len(rows) > 1 and all(map(_is_next, rows, rows[1:]))}


def _is_next(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether each number of a line is one more than that of the line before."""
    pairs = zip(one, other, strict=True)
    return all(a.isdigit() and b.isdigit() and int(b) == int(a) + 1 for a, b in pairs)


def joined_too_often(
    alone: Run, several: Run, volatile: Volatile, as_launched: Callable[[], Run] | None = None
) -> Verdict | None:
    """E3 for what is said of a training, from two frozen runs; None if nothing is wrong.

    Each process tells its share, or all tell what they have joined; which of the two is meant cannot be known. But what
    is just so many times as large as there are processes is no share of anything: it was added up where it was to be
    averaged, or each had all of it. In a run that was cut, the lines of one text are not those of as many samples.

    Where the global batch is kept, each process has as many batches as one has, and a sum over batches is so many times
    as large that is right `as_launched`: that is run only if there is such a number.
    """
    times = several.processes
    if alone.cut or several.cut:
        return None
    launched: Run | None = None
    for pairs in in_turn(said(alone.main), said(several.main)):
        for number in range(len(pairs[0][0].numbers)):
            if volatile.covers(pairs[0][0], number) or (first := _multiple(pairs, number, times)) is None:
                continue
            if as_launched is not None and several.splits:
                launched = launched or as_launched()
                if _is_once(alone, launched, pairs[0][0].template, number):
                    continue
            one, other = first
            difference = Difference("line", repr(one.line.text), repr(other.line.text), place=one.line.place)
            message = f"a number is {times} times as large, as if each process had all of it"
            return Verdict(Contract.E3, times, Outcome.FAIL, message, difference)
    return None


def _multiple(pairs: Sequence[tuple[Said, Said]], number: int, times: int) -> tuple[Said, Said] | None:
    """The first of some lines in which a number is so many times as large, if it is so in all of them."""
    texts = [(one.numbers[number], other.numbers[number]) for one, other in pairs]
    if not all(may_be_multiple(*each, times) for each in texts):
        return None  # one of many lines is so by chance
    if len({each for each in texts if float(each[0])}) == 1 < len(set(texts)):
        return None  # and so is one among zeros
    return next((pair for pair, each in zip(pairs, texts, strict=True) if is_multiple(*each, times)), None)


def _is_once(alone: Run, several: Run, template: str, number: int) -> bool:
    """Whether a number of all lines of one text is nearer to that of one process than to a multiple of it.

    The samples that fill up the last batches count twice in it.
    """
    if several.cut or several.has_failed:
        return False
    lines = (pairs for pairs in in_turn(said(alone.main), said(several.main)) if pairs[0][0].template == template)
    texts = [(one.numbers[number], other.numbers[number]) for pairs in lines for one, other in pairs]
    return bool(texts) and all(
        2 * abs(float(other) - float(one)) < (several.processes - 1) * abs(float(one)) for one, other in texts
    )


def in_turn(lines: Sequence[Said], theirs: Sequence[Said]) -> list[list[tuple[Said, Said]]]:
    """Lines of one text that are said as often by both, in pairs."""
    both: dict[str, tuple[list[Said], list[Said]]] = {}
    for side, some in enumerate((lines, theirs)):
        for line in some:
            both.setdefault(line.template, ([], []))[side].append(line)
    return [list(zip(*sides, strict=True)) for sides in both.values() if len(sides[0]) == len(sides[1])]


def after_evaluation(record: Record) -> list[Said]:
    """Lines with numbers that were said when the last batches had not been trained on."""
    return [each for each in said(record) if record.is_after_evaluation(each.line) and each.numbers]


def counterparts(alone: Record, other: Record) -> list[Said | None]:
    """For each line after an evaluation the same line in another run: None where it was not said.

    Lines of one text are the same by their number among those that were said after as many training passes: what one
    run did not come to, or says before any evaluation, moves no other line.
    """
    theirs: dict[tuple[int, str], deque[Said]] = {}
    for line in after_evaluation(other):
        theirs.setdefault((other.trained_before(line.line), line.template), deque()).append(line)
    found: list[Said | None] = []
    for line in after_evaluation(alone):
        same = theirs.get((alone.trained_before(line.line), line.template))
        found.append(same.popleft() if same else None)
    return found


def _has_learned(record: Record) -> bool:
    seen: dict[int, int] = {}
    return any(seen.setdefault(step.optimizer, step.parameters) != step.parameters for step in record.steps)


def _nothing(record: Record) -> str:
    trained = set(record.trained)
    if any(batch.passes not in trained for batch in record.batches):
        return "there is an evaluation, but no number is printed or logged after it"
    return "no evaluation over a loader was reached; more --steps may reach one"


def _shown(number: Number) -> Difference:
    one, other = number.texts
    line = number.one.line
    size = abs(float(one) - float(other))
    return Difference("line", repr(line.text), repr(number.other.line.text), place=line.place, size=size)
