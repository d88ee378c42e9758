"""What is shown where: results on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate import __version__
from migrate.cli import catalogue
from migrate.cli.guard import trace
from migrate.options import Mode
from migrate.report import text
from migrate.report.model import OUR_BUG, Kind
from migrate.report.stream import emit
from migrate.report.text import Style

if TYPE_CHECKING:
    from migrate.report.model import Report


class Format(str, Enum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    GITLAB = "gitlab"
    RDJSON = "rdjson"


class Color(str, Enum):
    """When to use colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Printing:
    """How results are shown."""

    quiet: bool
    verbose: bool
    color: Color
    traceback: bool
    format: Format = Format.TEXT

    def style(self, is_terminal: bool) -> Style:
        """For a stream: colours only on a terminal, unless they are asked for."""
        wanted = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return Style(self.verbose, self.color is Color.ALWAYS or (self.color is Color.AUTO and wanted))

    def result(self, report: Report, mode: Mode) -> None:
        """What a run was asked for, on standard output: findings, or the diff."""
        style = self.style(sys.stdout.isatty())
        if self.format is not Format.TEXT:
            emit(self._document(report, mode), sys.stdout)
        elif mode is Mode.CHECK:
            emit(text.findings(report, kinds(mode, style), style, excerpts=True), sys.stdout)
        else:
            from migrate.report import diff  # and with it difflib: not for a check

            patch = diff.diff(report.changes) if mode is Mode.DIFF else diff.readable(report.changes)
            emit(diff.coloured(patch) if style.colour else patch, sys.stdout)

    def rest(self, report: Report, mode: Mode) -> None:
        """Everything that is not the result, on standard error."""
        style = self.style(sys.stderr.isatty())
        parts: list[str] = []
        if mode in {Mode.PREVIEW, Mode.WRITE} and not self.quiet and self.format is Format.TEXT:
            told = mode is Mode.PREVIEW or style.verbose
            parts.append(text.summaries(report, text.width_of(sys.stderr)) if told else "")
            shown = report.remaining() if mode is Mode.WRITE and not style.verbose else report
            parts.append(text.findings(shown, kinds(mode, style), style))
            parts.append(text.edits(report.changes, style) if style.verbose else "")
            parts.append(text.lost_comments(report.changes))
        elif mode is not Mode.CHECK and self.format is Format.TEXT:
            parts.append(text.findings(report.only(OUR_BUG), Kind, style))
        if not self.quiet:
            parts.append("".join(f"{text.one_line(remark)}\n" for remark in report.remarks))
        parts.append(text.problems(report))
        if not self.quiet:
            parts.append(text.summary(report, mode))
        emit("\n".join(part for part in parts if part), sys.stderr)
        if self.traceback:
            trace([*report.problems, *report.causes])

    def _document(self, report: Report, mode: Mode) -> str:
        """The findings in the format of another program."""
        from migrate.report.formats import FORMATS, About  # a person who reads text does not wait for these

        shown = report.remaining() if mode is Mode.WRITE else report
        wanted = kinds(mode, Style(self.verbose))
        rules = {rule.code: rule for rule in catalogue.every()}
        about = About(__version__, mode, rules)
        return FORMATS[self.format.value](shown.showing(lambda finding: finding.kind in wanted), about)


def kinds(mode: Mode, style: Style) -> frozenset[Kind]:
    """Which findings a mode shows."""
    shown = {Kind.LOOP, Kind.LEFT, Kind.FAULT, Kind.REVIEW}
    shown |= set() if mode is Mode.CHECK else {Kind.NOTE}
    return frozenset({*shown, Kind.NOTE} if style.verbose else shown)
