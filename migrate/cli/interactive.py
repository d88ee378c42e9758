"""`--interactive`: each program's diff is shown, and a person says whether it is converted, as `git add -p` asks."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.report import text
from migrate.report.groups import grouped
from migrate.report.stream import emit
from migrate.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.report.model import Change, Report
    from migrate.report.text import Style

HELP = """\
y - convert this program
n - leave this program as it is
a - convert this program and all that follow
q - quit: leave this program and all that follow
? - show this help
"""
ALL, QUIT = "a", "q"
LETTERS = {"y": "y", "yes": "y", "n": "n", "no": "n", "a": ALL, "all": ALL, "q": QUIT, "quit": QUIT}


def chosen(report: Report, style: Style) -> Report:
    """The report with the conversions that a person wants; of files that are converted together, all or none."""
    kept: list[Change] = []
    groups = grouped(report.changes, report.summaries)
    answer = ""
    for number, changes in enumerate(groups, 1):
        if answer not in (ALL, QUIT):
            _show(report, changes, style)
            answer = _answer(changes, f"({number}/{len(groups)}) ", style)
        kept += changes if answer in ("y", ALL) else ()
    refused = {change.path for change in report.changes} - {change.path for change in kept}
    return report.unconverted(refused)


def _show(report: Report, changes: Sequence[Change], style: Style) -> None:
    from migrate.report import diff

    paths = {change.path for change in changes}
    summaries = tuple(summary for summary in report.summaries if summary.path in paths)
    told = text.summaries(replace(report, summaries=summaries), text.width_of(sys.stdout))
    patch = diff.readable(changes)
    emit(f"{told}\n" if told else "", sys.stdout)
    emit(diff.coloured(patch) if style.colour else patch, sys.stdout)


def _answer(changes: Sequence[Change], place: str, style: Style) -> str:
    """One of the letters; what ends without one quits."""
    names = one_line(", ".join(change.path for change in changes))
    what = names if len(changes) == 1 else f"these {len(changes)} files ({names})"
    while True:
        emit(style.paint(f"{place}Convert {what} [y,n,a,q,?]? ", "1;34"), sys.stdout)
        line = sys.stdin.readline()
        if not line:
            emit("\n", sys.stdout)
            return QUIT
        if letter := LETTERS.get(line.strip().lower()):  # "abort" does not mean all
            return letter
        emit(HELP, sys.stdout)
