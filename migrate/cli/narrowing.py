"""`--since`, `--baseline`, `--update-baseline`: of what a check has found, that which is new."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.errors import UsageError
from migrate.options import Mode
from migrate.report.counted import counted
from migrate.source import document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.options import Options
    from migrate.report.model import Finding, Report


def check(options: Options) -> None:
    """See before anything is done that a new baseline can be written.

    Raises:
        UsageError: it has no name, or would take the place of something else.
    """
    if not options.baseline:
        raise UsageError("--update-baseline does not know which file", "Give --baseline FILE, too.")
    document.check(options.baseline, _kind())


def _kind() -> document.Kind:
    from migrate.report.baseline import is_ours  # few runs have one

    return document.Kind("baseline", "migrate-baseline.json", is_ours)


def narrowed(report: Report, options: Options, since: str, paths: Sequence[str], *, update: bool) -> Report:
    """The report with what was asked for alone; a new baseline is written.

    Raises:
        UsageError: git does not know the revision, or the baseline cannot be read.
        WriteError: it cannot be written.
    """
    if options.mode is not Mode.CHECK:
        return report
    if update:
        return _updated(report, options)
    unknown = _beside(report, options) if options.baseline else report  # first: it counts what is no longer found
    return _since(unknown, since, paths) if since else unknown


def _since(report: Report, revision: str, paths: Sequence[str]) -> Report:
    from migrate.configuration import folders_of
    from migrate.report.groups import narrowed as kept
    from migrate.source.git import touched

    lines = [touched(revision, folder) for folder in _tops(folders_of(paths))]

    def is_new(finding: Finding) -> bool:
        source = report.sources.get(finding.path)
        real = source.real if source else None
        first, last = (1, sys.maxsize) if finding.cell is not None else (finding.line, finding.end_line)
        return any(each.any_of(real, first, last) for each in lines)  # git counts the lines of a notebook's JSON

    return kept(report, is_new)


def _tops(folders: Sequence[Path]) -> Sequence[Path]:
    """One folder of each work tree; where there is none, git is asked all the same, which says so."""
    from migrate.source.git import top_of

    return list(dict.fromkeys(top_of(folder) or folder for folder in folders))


def _beside(report: Report, options: Options) -> Report:
    from migrate.report import baseline

    assert options.baseline is not None
    path = Path(options.baseline)
    left, gone = baseline.without(report, baseline.read(path), path)
    number = counted(gone.total(), "finding")
    remark = f"{os.path.relpath(path)}: {number} no longer found; --update-baseline takes them out"
    return _without(report, left, remark if gone else "")


def _updated(report: Report, options: Options) -> Report:
    from migrate.report import baseline

    assert options.baseline is not None
    if report.problems:
        return report  # what could not be read would be missing
    path = Path(options.baseline)
    document.write(options.baseline, baseline.written(report, path), _kind())
    known = baseline.read(path)
    left, _ = baseline.without(report, known, path)
    return _without(report, left, f"{os.path.relpath(path)}: {counted(known.total(), 'finding')} written")


def _without(report: Report, left: Report, remark: str) -> Report:
    """What is left of a report, with the number of findings that are known, notes apart, and with a remark."""
    from migrate.report import baseline

    before, after = (sum(f.kind in baseline.KINDS for f in each.findings) for each in (report, left))
    remarks = (*report.remarks, *([remark] if remark else ()))
    return replace(left, ignored=report.ignored + before - after, remarks=remarks)
