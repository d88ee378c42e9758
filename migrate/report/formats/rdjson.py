"""`rdjson`: what reviewdog reads. Columns count UTF-8 bytes, and ends are excluded (reviewdog.proto).

A conversion is told piece by piece, each with a suggestion for exactly its lines: that is the only kind that reviewdog
can hand on to a review. Together they are the conversion; one alone is not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from migrate.report.diff import name_of
from migrate.report.formats.about import TOOL, About
from migrate.report.model import Kind
from migrate.report.pieces import pieces
from migrate.report.place import region_in_file
from migrate.report.severity import Severity, severity

if TYPE_CHECKING:
    from migrate.errors import MigrateError
    from migrate.report.model import Change, Finding, Report

WORDS = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.NOTE: "INFO"}


def rendered(report: Report, about: About) -> str:
    """One `DiagnosticResult`, with a line feed at its end."""
    diagnostics = [_finding(finding, report) for finding in report.findings]
    diagnostics += [made for change in report.changes for made in _suggestions(change, report)]
    diagnostics += [_problem(problem) for problem in report.problems if problem.path]
    return json.dumps({"source": {"name": TOOL}, "diagnostics": diagnostics}, indent=2) + "\n"


def _finding(finding: Finding, report: Report) -> dict[str, Any]:
    where = region_in_file(finding, report)
    start, end = where.in_bytes()
    hint = f"\n{finding.hint}" if finding.hint else ""
    return {
        "message": f"{finding.message}{hint}",
        "location": {
            "path": name_of(finding.path),
            "range": {"start": {"line": where.line, "column": start}, "end": {"line": where.line, "column": end}},
        },
        "severity": WORDS[severity(finding)],
        "code": {"value": finding.code},
    }


def _suggestions(change: Change, report: Report) -> list[dict[str, Any]]:
    loops = [loop for loop in report.of(Kind.LOOP) if loop.path == change.path]
    where = f" of the training loop in line {region_in_file(loops[0], report).line}" if loops else ""
    every = pieces(change)
    made = []
    for number, piece in enumerate(every, 1):
        lines = {"start": {"line": piece.first}, "end": {"line": piece.last}}
        count = f"{number} of {len(every)} in this file, which belong together"
        made.append(
            {
                "message": f"conversion{where} ({count})",
                "location": {"path": name_of(change.path), "range": lines},
                "severity": WORDS[Severity.NOTE],
                "code": {"value": "MIG001"},
                "suggestions": [{"range": lines, "text": piece.text}],
            }
        )
    return made


def _problem(problem: MigrateError) -> dict[str, Any]:
    location: dict[str, Any] = {"path": name_of(problem.path)}
    if problem.line_of_file:
        location["range"] = {"start": {"line": problem.line_of_file}}
    return {"message": problem.said, "location": location, "severity": "ERROR"}
