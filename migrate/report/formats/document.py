"""`json`: everything that a run has to say. docs/findings.schema.json is its schema; VERSION changes with it.

Lines and columns are 1-based; columns count characters, and ends are excluded.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from migrate.report.diff import name_of
from migrate.report.fingerprint import fingerprints
from migrate.report.formats.about import TOOL, About
from migrate.report.model import Kind
from migrate.report.pieces import pieces
from migrate.report.place import region
from migrate.report.severity import severity

if TYPE_CHECKING:
    from migrate.errors import MigrateError
    from migrate.report.model import Change, Finding, Report

VERSION = 1


def rendered(report: Report, about: About) -> str:
    """The document, with a line feed at its end."""
    names = {finding.path: name_of(finding.path) for finding in report.findings}
    marks = fingerprints(report, names)
    loops = report.of(Kind.LOOP)
    document = {
        "version": VERSION,
        "tool": {"name": TOOL, "version": about.version},
        "mode": about.mode.value,
        "written": report.written,
        "findings": [
            _finding(finding, report, about, mark) for finding, mark in zip(report.findings, marks, strict=True)
        ],
        "changes": [_change(change) for change in report.changes],
        "programs": [{"filename": p.path, "files": list(p.files), "summary": p.text} for p in report.summaries],
        "problems": [_problem(problem) for problem in report.problems],
        "remarks": list(report.remarks),
        "summary": {
            "files": report.files,
            "loops": len(loops),
            "convertible": sum(bool(loop.converts) for loop in loops),
            "ignored": report.ignored,
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(finding: Finding, report: Report, about: About, mark: str) -> dict[str, Any]:
    where = region(finding, report)
    return {
        "code": finding.code,
        "name": about.name(finding.code),
        "kind": finding.kind.value,
        "severity": severity(finding).name.lower(),
        "message": finding.message,
        "hint": finding.hint,
        "filename": finding.path,
        "cell": finding.cell,
        "location": {"row": where.line, "column": where.column},
        "end_location": {"row": where.line, "column": where.end_column},
        "last_row": finding.end_line,
        "source": where.text,
        "converts": finding.converts,
        "loop": finding.loop,
        "fingerprint": mark,
    }


def _change(change: Change) -> dict[str, Any]:
    edits = [
        {
            "location": {"row": piece.first, "column": 1},
            "end_location": {"row": piece.last, "column": piece.end_column},
            "content": piece.text,
        }
        for piece in pieces(change)
    ]
    return {"filename": change.path, "edits": edits, "lost_comments": list(change.lost_comments)}


def _problem(problem: MigrateError) -> dict[str, Any]:
    return {
        "filename": problem.path,
        "cell": problem.cell or None,
        "row": problem.line,
        "message": problem.what,
        "hint": problem.way_out,
    }
