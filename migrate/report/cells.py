"""What is said of the module that stands for a notebook, told of the notebook: cells and their lines, its own bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.report.model import Change, Edit, Finding, Kind, Report, Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from migrate.errors import MigrateError
    from migrate.report.map import Place
    from migrate.source.notebook import Notebook
    from migrate.source.project import SourceFile

DISORDER = "MIG908"
_LINES = re.compile(r"\blines? (\d+(?:(?:, | and )\d+\b(?! more))*)(?! of \S+\.(?:py|ipynb)\b)")


def notebooks_of(files: Iterable[SourceFile]) -> Mapping[str, Notebook]:
    """Those of some files that are notebooks, by path."""
    return {file.path: file.notebook for file in files if file.notebook is not None}


def in_cells(report: Report, notebooks: Mapping[str, Notebook]) -> Report:
    """The report with the places and bytes of notebooks, by path, in the place of those of their modules."""
    if not notebooks:
        return report
    told = [_finding(finding, notebooks) for finding in report.findings]
    notes = _disorders(told, notebooks)
    findings = sorted([*told, *notes], key=lambda f: (f.path, f.cell or 0, f.line, f.column, f.code))
    return replace(
        report,
        findings=tuple(findings),
        summaries=tuple(_summary(summary, notebooks) for summary in report.summaries),
        changes=tuple(_change(change, notebooks.get(change.path)) for change in report.changes),
        problems=tuple(_problem(problem, notebooks) for problem in report.problems),
    )


def _finding(finding: Finding, notebooks: Mapping[str, Notebook]) -> Finding:
    own = notebooks.get(finding.path)
    message, hint = (said(text, notebooks, own) for text in (finding.message, finding.hint))
    loop = said(finding.loop, notebooks) if finding.loop is not None else None
    if own is None:
        return replace(finding, message=message, hint=hint, loop=loop)
    cell, line = own.place(finding.line)
    last, end_line = own.place(finding.end_line)
    return replace(
        finding,
        line=line,
        column=own.column(finding.line, finding.column),
        end_line=end_line if last == cell else line,
        message=message,
        hint=hint,
        loop=loop,
        cell=cell,
    )


def _summary(summary: Summary, notebooks: Mapping[str, Notebook]) -> Summary:
    def at(place: Place) -> Place:
        if place.path not in notebooks:
            return place
        cell, line = notebooks[place.path].place(place.line)
        return replace(place, line=line, cell=cell)

    drawn = summary.map.moved(at) if summary.map is not None else None
    return replace(summary, text=said(summary.text, notebooks, notebooks.get(summary.path)), map=drawn)


def _change(change: Change, notebook: Notebook | None) -> Change:
    if notebook is None:
        return change
    cells, new = notebook.changes(change.new), notebook.content_with(change.new)
    lost = tuple(re.sub(r"\A\d+", lambda found: _place(notebook, found[0]), text) for text in change.lost_comments)
    edits = tuple(_edit(edit, notebook) for edit in change.edits)
    return Change(change.path, notebook.content, new, lost, cells, edits)


def _edit(edit: Edit, notebook: Notebook) -> Edit:
    cell, line = notebook.place(edit.line)
    last, end_line = notebook.place(edit.end_line)
    return replace(edit, line=line, end_line=end_line if last == cell else line, cell=cell)


def _problem(problem: MigrateError, notebooks: Mapping[str, Notebook]) -> MigrateError:
    own = notebooks.get(problem.path)
    if own is not None and problem.line and not problem.cell:
        problem.cell, problem.line = own.place(problem.line)
    return problem


def _disorders(findings: Iterable[Finding], notebooks: Mapping[str, Notebook]) -> Iterator[Finding]:
    """A note for each notebook with training that was last run in another order than its cells stand in."""
    for path in dict.fromkeys(finding.path for finding in findings if finding.kind is Kind.LOOP):
        if path in notebooks and (found := notebooks[path].disorder) is not None:
            upper, lower = found
            what = f"this cell was last run as [{lower.count}], before cell {upper.number}, which is [{upper.count}]"
            message = f"{what}: what is understood goes by the order in which the cells stand"
            hint = "run all cells from the top before you compare results"
            yield Finding(DISORDER, path, 1, 1, 1, message, hint, Kind.NOTE, cell=lower.number)


def said(text: str, notebooks: Mapping[str, Notebook], own: Notebook | None = None) -> str:
    """A text in which lines are those of cells: `train.ipynb:31`; of the notebook that it is about also `line 31`."""
    for path, notebook in notebooks.items():
        if path in text:
            start = re.escape(path)
            text = _replaced(rf"(?<={start}:)\d+|(?<=\bline )\d+(?= of {start})", text, notebook)
            text = re.sub(rf"\bline (?=cell \d+:\d+ of {start})", "", text)
    if own is not None:
        text = _LINES.sub(lambda found: _replaced(r"\d+", found[1], own), text)
    return text


def _replaced(numbers: str, text: str, notebook: Notebook) -> str:
    return re.sub(numbers, lambda found: _place(notebook, found[0]), text)


def _place(notebook: Notebook, line: str) -> str:
    cell, inside = notebook.place(int(line))
    return f"cell {cell}:{inside}"
