"""Lines of text as templates and numbers: what differs between two runs of one program counts for nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from migrate.verify.compare.numbers import is_near
from migrate.verify.records import Line, Record

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
#: What goes by the clock or by where things lie in memory, and what is said in two ways.
CLOCK = (
    (re.compile(r"\d{4}[-/]\d\d[-/]\d\d"), "<date>"),
    (re.compile(r"\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b\d\d: \d\d: \d\d\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:s|ms|us|sec|secs|seconds|min|minutes|it/s|s/it)\b"), "<time>"),
    (re.compile(r"\b(?:[Tt]ime|[Ee]lapsed|[Dd]uration|[Ss]peed|ETA|eta)\b\W{0,4}\d+(?:\.\d+)?"), "<time>"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "<address>"),
    (re.compile(r"\b(cuda|xpu|mps):0\b"), r"\1"),  # the accelerator of one process takes the current GPU, by no number
)
PADDING = re.compile(r" +(?=#|<time>)")  # before a number of a fixed width: `{:5.2f}`
SIGNIFICANT = 1e-3  # a last digit that weighs less may come from rounding a number that differs far behind it
REDUCTION = 1e-5  # relative; floats are added in another order
DIGITS = 3  # a number with fewer may be twice another by chance


@dataclass(frozen=True, slots=True)
class Said:
    """A line, taken apart."""

    line: Line
    template: str
    numbers: tuple[str, ...]


@dataclass(slots=True)
class Volatile:
    """Which numbers of which lines differ between two runs of the original."""

    places: set[tuple[str, int]] = field(default_factory=set)
    templates: set[str] = field(default_factory=set)  # lines that do not even have one text

    @classmethod
    def between(cls, first: Record, second: Record) -> Volatile:
        """What differs between two runs of one program."""
        found = cls()
        for one, other in zip(said(first), said(second), strict=False):
            if one.template != other.template:
                found.templates |= {one.template, other.template}
                break
            found.places |= {(one.template, number) for number in differing(one, other)}
        return found

    def covers(self, said: Said, number: int) -> bool:
        """Whether a number says nothing."""
        return (said.template, number) in self.places


def said(record: Record) -> list[Said]:
    """All lines of a process but progress bars."""
    return [taken(line) for line in record.lines if not line.is_bar and line.text.strip()]


def taken(line: Line) -> Said:
    """A line as a template and its numbers."""
    text = _without_place(line)
    for pattern, name in CLOCK:
        text = pattern.sub(name, text)
    return Said(line, PADDING.sub(" ", NUMBER.sub("#", text)), tuple(NUMBER.findall(text)))


def _without_place(line: Line) -> str:
    """A line without the number of the statement that says it, `%(filename)s:%(lineno)d`, which is another one now."""
    path, _, number = line.place.rpartition(":")
    told = rf"((?:\b{re.escape(PurePosixPath(path).stem)}|\bline)\b\D{{1,12}}){number}\b"
    return re.sub(told, r"\1<line>", line.text.rstrip()) if number.isdigit() else line.text.rstrip()


def differing(one: Said, other: Said) -> list[int]:
    """Which numbers of two lines with one template are not the same text."""
    return [i for i, (a, b) in enumerate(zip(one.numbers, other.numbers, strict=True)) if a != b]


def first_difference(left: Sequence[Said], right: Sequence[Said], volatile: Volatile) -> tuple[str, str, str] | None:
    """What the first lines that differ say, and where the first of them was said; None if none does."""
    for number in range(max(len(left), len(right))):
        one = left[number] if number < len(left) else None
        other = right[number] if number < len(right) else None
        if one is None or other is None:
            missing = one or other
            assert missing is not None
            texts = (missing.line.text, "nothing") if one else ("nothing", missing.line.text)
            return (*texts, missing.line.place)
        if one.template in volatile.templates:
            return None  # from here on the original does not say the same twice
        if one.template != other.template or any(not volatile.covers(one, i) for i in differing(one, other)):
            return one.line.text, other.line.text, one.line.place
    return None


def is_close(one: str, other: str) -> bool:
    """Whether two printed numbers are one, computed in another order of additions."""
    if one == other:
        return True
    a, b = float(one), float(other)
    size = max(abs(a), abs(b))
    unit = _last_digit(one)
    allowed = unit if unit <= SIGNIFICANT * size else 0.0
    return is_near(a, b, max(REDUCTION * size, 1.01 * allowed))


def is_multiple(one: str, other: str, times: int) -> bool:
    """Whether one printed number is just so many times another, as far as its digits go."""
    digits = one.lower().partition("e")[0].replace(".", "").lstrip("+-0")
    is_told = digits.isdigit() and len(digits) >= DIGITS and not is_close(one, other)
    return is_told and may_be_multiple(one, other, times)


def may_be_multiple(one: str, other: str, times: int) -> bool:
    """The same of a number with however few digits."""
    expected = times * float(one)
    return abs(expected - float(other)) <= max(REDUCTION * abs(expected), times * _last_digit(one))


def _last_digit(text: str) -> float:
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) if "." in mantissa else 0.0
