"""Files that are converted together or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from migrate.report.model import Change, Finding, Report, Summary


def group(path: str, summaries: Sequence[Summary]) -> frozenset[str]:
    """All files that are tied to this one, directly or through programs that share a file."""
    found = {path}
    size = 0
    while len(found) > size:
        size = len(found)
        found.update(other for summary in summaries if found & set(summary.files) for other in summary.files)
    return frozenset(found)


def grouped(changes: Sequence[Change], summaries: Sequence[Summary]) -> Sequence[Sequence[Change]]:
    """The changes, in order, those together that stand or fall together."""
    waiting = list(changes)
    made = []
    while waiting:
        paths = group(waiting[0].path, summaries)
        made.append([change for change in waiting if change.path in paths])
        waiting = [change for change in waiting if change.path not in paths]
    return made


def narrowed(report: Report, is_kept: Callable[[Finding], bool]) -> Report:
    """The report of `--check` with some findings alone.

    A loop that goes takes its reasons with it, and files count as to be changed only where a loop that is left leads to
    them.
    """
    gone = {finding.loop for finding in report.of(Kind.LOOP) if not is_kept(finding)} - {None}
    findings = tuple(f for f in report.findings if f.loop not in gone and (f.loop is not None or is_kept(f)))
    paths = {f.path for f in findings if f.kind is Kind.LOOP}
    near = frozenset[str]().union(*(group(path, report.summaries) for path in paths))
    return replace(report, findings=findings, touched=tuple(path for path in report.touched if path in near))
