"""The report as lines for people.

`path:line:column CODE message`, the source line, the way out below it, and one line of counts at the end.
"""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from migrate.options import Mode
from migrate.report.counted import counted
from migrate.report.model import OUR_BUG, Change, Finding, Kind, Report
from migrate.report.place import Region, region
from migrate.report.stream import NO_LOOPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WIDTH = 100  # columns, where there is no terminal to ask
MOST_PATHS = 8  # files that are listed in one sentence
LONGEST = 120  # characters of a source line that are shown
BOLD, RED, YELLOW, BLUE, CYAN = "1", "31", "33", "34", "36"
COLOUR_OF = {Kind.LOOP: YELLOW, Kind.LEFT: RED, Kind.REVIEW: YELLOW, Kind.NOTE: CYAN, Kind.FAULT: RED}


@dataclass(frozen=True, slots=True)
class Style:
    """How much to say, and whether in colour."""

    verbose: bool = False
    colour: bool = False

    def paint(self, text: str, code: str) -> str:
        """The text in a colour of the terminal, where colours are on."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


def findings(report: Report, kinds: Iterable[Kind], style: Style, *, excerpts: bool = False) -> str:
    """The findings of some kinds, grouped by file, in order of lines; a blank line between files.

    `excerpts`: with the source lines, where no diff shows them.
    """
    kinds = frozenset(kinds)
    wanted = [finding for finding in report.findings if finding.kind in kinds]
    order = {path: place for place, path in enumerate(dict.fromkeys(f.path for f in report.findings))}
    wanted.sort(key=lambda f: (order[f.path], f.cell or 0, f.line, f.column, f.code))
    groups = (list(group) for _, group in groupby(wanted, key=lambda f: f.path))
    return "\n".join(
        "".join(line + "\n" for line in _group(group, report if excerpts else None, style)) for group in groups
    )


def _group(findings: Iterable[Finding], report: Report | None, style: Style) -> Iterator[str]:
    """The lines about one file; a place that several findings share is shown once."""
    last = None
    for finding in findings:
        code = style.paint(finding.code, COLOUR_OF[finding.kind])
        place = style.paint(one_line(finding.place), BOLD)
        yield f"{place} {code} {one_line(finding.message)}"
        if report is not None and finding.place != last:
            yield from excerpt(region(finding, report), style)
        if finding.hint:
            yield f"    {one_line(finding.hint)}"
        last = finding.place


def excerpt(where: Region, style: Style) -> Iterator[str]:
    """A line of the source, with a caret below the column; nothing where the source is not known."""
    if not where.text.strip():
        return
    number = str(where.line)
    before = one_line(where.text[: where.column - 1])
    text = before + one_line(where.code)
    yield f"    {style.paint(f'{number} |', BLUE)} {text if len(text) <= LONGEST else f'{text[: LONGEST - 1]}…'}"
    if len(before) < LONGEST:
        margin = style.paint(f"{' ' * len(number)} |", BLUE)
        yield f"    {margin} {' ' * _columns(before)}{style.paint('^', YELLOW)}"


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes: East Asian characters are two wide, accents none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def summaries(report: Report, width: int = WIDTH) -> str:
    """What was understood: one paragraph a training program, and which other files belong to which."""
    said = (f"{one_line(program.path)}: {one_line(program.text)}" for program in report.summaries)
    told = [_wrapped(each, width) for each in dict.fromkeys(said)]  # scripts that share all of it are told once
    starts = [program.path for program in report.summaries]
    users: dict[str, list[str]] = {}
    for program in report.summaries:
        for part in program.parts:
            if part not in starts and program.path not in users.setdefault(part, []):
                users[part].append(program.path)
    together: dict[tuple[str, ...], list[str]] = {}
    for part, paths in users.items():
        together.setdefault(tuple(paths), []).append(part)
    for programs, files in together.items():
        whose = f"program of {programs[0]}" if len(programs) == 1 else f"programs of {_listed(programs)}"
        told.append(_wrapped(one_line(f"{_listed(files)}: part of the {whose}"), width))
    return "\n".join(told)


def _listed(paths: Sequence[str]) -> str:
    more = len(paths) - MOST_PATHS
    return ", ".join(paths[:MOST_PATHS]) + (f" and {counted(more, 'more file')}" if more > 0 else "")


def _wrapped(text: str, width: int) -> str:
    """A paragraph in lines of a terminal; names and paths stay whole."""
    import textwrap  # a check wraps nothing

    return textwrap.fill(text, max(width, 20), break_long_words=False, break_on_hyphens=False) + "\n"


def width_of(stream: TextIO) -> int:
    """How wide the terminal behind a stream is; where there is none, what is easy to read."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except (OSError, ValueError):  # not a terminal; no file behind it
        return WIDTH


def lost_comments(changes: Iterable[Change]) -> str:
    """The comments that went away with their statement, so that nothing disappears unseen."""
    return "".join(
        f"{one_line(change.path)}:{one_line(c)} (dropped with its statement)\n"
        for change in changes
        for c in change.lost_comments
    )


def edits(changes: Iterable[Change], style: Style) -> str:
    """Every edit in a line: where in the file as it was, the rule that made it, and a statement that it puts there."""
    lines: list[str] = []
    for change in changes:
        for edit in change.edits:
            cell = f"cell {edit.cell}:" if edit.cell else ""
            place = style.paint(f"{one_line(change.path)}:{cell}{edit.line}", BOLD)
            last = f" to {edit.end_line}" if edit.end_line > edit.line else ""
            what = f"adds {one_line(edit.text)}" if edit.text else f"changes line {edit.line}{last}"
            lines.append(f"{place} {style.paint(edit.code, CYAN)} {what}\n")
    return "".join(lines)


def problems(report: Report) -> str:
    """What could not be read, parsed or converted: one line each."""
    return "".join(f"migrate: {one_line(str(problem))}\n" for problem in report.problems)


def summary(report: Report, mode: Mode) -> str:
    """The last line: what happened to how many files and loops, or that nothing did."""
    loops = report.of(Kind.LOOP)
    converted = sum(bool(loop.converts) for loop in loops)
    left = sum(finding.code != OUR_BUG for finding in report.of(Kind.LEFT))
    parts = []
    if report.touched:
        verb = "converted" if report.written else "would change"
        parts.append(f"{counted(len(report.touched), 'file')} {verb}")
    if converted and mode is not Mode.CHECK:
        parts.append(f"{counted(converted, 'loop')} {'converted' if report.written else 'would be converted'}")
    if unconverted := len(loops) if mode is Mode.CHECK else len(loops) - converted:
        parts.append(f"{counted(unconverted, 'loop')} not converted")
    if left:
        parts.append(f"{counted(left, 'place')} left to you")
    if doubtful := len(report.of(Kind.REVIEW)):
        parts.append(f"{counted(doubtful, 'place')} to review")
    if faults := len(report.of(Kind.FAULT)):
        parts.append(counted(faults, "mistake"))
    if bugs := sum(finding.code == OUR_BUG for finding in report.findings):
        parts.append(f"{counted(bugs, 'bug')} of ours")
    if report.ignored:
        parts.append(f"{counted(report.ignored, 'finding')} ignored")
    if report.problems:
        parts.append(counted(len(report.problems), "error"))
    nothing = NO_LOOPS if mode is Mode.CHECK else "No changes.\n"
    return f"{', '.join(parts)}.\n" if parts else nothing


def one_line(text: str) -> str:
    """A message keeps to its line, and cannot drive the terminal with what a file contains."""
    return "".join(
        c if c.isprintable() or _is_escaped_byte(c) else " " if c in "\r\n\t" else ascii(c)[1:-1] for c in text
    )


def _is_escaped_byte(character: str) -> bool:
    return "\udc80" <= character <= "\udcff"  # a byte of a file name that is not UTF-8 (PEP 383)
