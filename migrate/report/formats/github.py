"""`github`: workflow commands, which GitHub shows as annotations of the lines in a pull request.

GitHub keeps ten errors, ten warnings and ten notices of a step and drops the rest unsaid. So the worst come first, a
loop and the reasons for which it is left are one annotation, and what is over the limit is printed as plain lines of
the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.report.diff import name_of
from migrate.report.formats.about import TOOL, About
from migrate.report.model import Finding, Kind
from migrate.report.place import region_in_file
from migrate.report.severity import Severity, severity
from migrate.report.text import one_line

if TYPE_CHECKING:
    from migrate.errors import MigrateError
    from migrate.report.model import Report

MOST = 10  # annotations of one grade in a step
WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


@dataclass(frozen=True, slots=True)
class _Annotation:
    """One workflow command."""

    severity: Severity
    path: str
    line: int
    columns: tuple[int, int] | None
    title: str
    message: str

    def __str__(self) -> str:
        properties = {"title": f"{TOOL} {self.title}".strip(), "file": self.path}
        if self.line:
            properties |= {"line": str(self.line), "endLine": str(self.line)}
        if self.columns:
            properties |= {"col": str(self.columns[0]), "endColumn": str(self.columns[1])}
        listed = ",".join(f"{name}={_shown(value, PROPERTY)}" for name, value in properties.items() if value)
        return f"::{WORDS[self.severity]} {listed}::{_shown(self.message, DATA)}"

    @property
    def plain(self) -> str:
        """The same as a line of the log."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        # Two colons at the beginning of a line would make it a command, whatever a file is called.
        return one_line(f"{place} {self.title} {self.message}").lstrip(": ")


def _shown(value: str, table: dict[int, str]) -> str:
    """A value as a command has it; what could drive a terminal is spelled out."""
    return re.sub(r"[^\r\n]+", lambda line: one_line(line[0]), value).translate(table)


def rendered(report: Report, about: About) -> str:
    """The commands, then what GitHub would have dropped."""
    every = [_problem(problem) for problem in report.problems]
    every += [_finding(finding, report) for finding in _merged(report.findings)]
    shown: list[_Annotation] = []
    dropped: list[_Annotation] = []
    for grade in sorted(Severity, reverse=True):
        of_grade = [annotation for annotation in every if annotation.severity is grade]
        shown += of_grade[:MOST]
        dropped += of_grade[MOST:]
    lines = [str(annotation) for annotation in shown]
    if dropped:
        lines.append(f"GitHub shows {MOST} annotations of a kind for a step; these are over it:")
        lines += [annotation.plain for annotation in dropped]
    return "".join(f"{line}\n" for line in lines)


def _merged(findings: tuple[Finding, ...]) -> list[Finding]:
    """The findings, with the reasons for which a loop is left in the loop's own message."""
    loops = {f.loop: f for f in findings if f.kind is Kind.LOOP}
    reasons: dict[str | None, list[str]] = {}
    kept: list[Finding] = []
    for finding in findings:
        if finding.kind is Kind.LEFT and finding.loop in loops:
            is_near = finding.path == loops[finding.loop].path
            cell = f"cell {finding.cell}:" if finding.cell is not None else ""
            near = f"{cell}{finding.line}" if cell else f"line {finding.line}"
            place = near if is_near else f"{finding.path}:{cell}{finding.line}"
            way_out = f" ({finding.hint})" if finding.hint else ""
            reasons.setdefault(finding.loop, []).append(f"{finding.code} in {place}: {finding.message}{way_out}")
        else:
            kept.append(finding)
    return [
        replace(f, message="\n".join((f.message, *reasons.get(f.loop, ())))) if f.kind is Kind.LOOP else f for f in kept
    ]


def _finding(finding: Finding, report: Report) -> _Annotation:
    where = region_in_file(finding, report)
    message = f"{finding.message}\n{finding.hint}" if finding.hint else finding.message
    columns = (where.column, where.end_column)
    return _Annotation(severity(finding), name_of(finding.path), where.line, columns, f"({finding.code})", message)


def _problem(problem: MigrateError) -> _Annotation:
    message = problem.said
    path = name_of(problem.path) if problem.path else ""
    return _Annotation(Severity.ERROR, path, problem.line_of_file, None, "", message)
