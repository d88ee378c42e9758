"""`sarif`: SARIF 2.1.0 (OASIS), with what GitHub's code scanning asks for.

A result points at the first line of a loop, since GitHub shows an alert in a pull request only where all of its lines
are in the diff. GitHub reads no `fixes`; editors that read SARIF do.
"""

from __future__ import annotations

import json
import os
import urllib.parse
from typing import TYPE_CHECKING, Any

from migrate.report.diff import name_of
from migrate.report.fingerprint import fingerprints
from migrate.report.formats.about import TOOL, About, Documented
from migrate.report.groups import group
from migrate.report.model import Kind
from migrate.report.pieces import pieces
from migrate.report.place import region_in_file
from migrate.report.severity import Severity, severity

if TYPE_CHECKING:
    from migrate.errors import MigrateError
    from migrate.report.model import Change, Finding, Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
MARK = "primaryLocationLineHash"  # GitHub tells alerts of two commits apart by it


def rendered(report: Report, about: About) -> str:
    """The log of one run, with a line feed at its end."""
    codes = sorted({finding.code for finding in report.findings})
    marks = fingerprints(report, {finding.path: name_of(finding.path) for finding in report.findings})
    fixed = _fixed(report)
    results = [
        _result(finding, report, codes, mark, fixed.get(finding))
        for finding, mark in zip(report.findings, marks, strict=True)
    ]
    run = {
        "tool": {
            "driver": {
                "name": TOOL,
                "semanticVersion": about.version,
                "rules": [_rule(code, about.rules.get(code)) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "toolExecutionNotifications": [_notification(problem) for problem in report.problems],
            }
        ],
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str, rule: Documented | None) -> dict[str, Any]:
    summary = rule.summary if rule else code
    documentation = rule.documentation if rule else f"migrate --explain {code}"
    return {
        "id": code,
        "name": rule.name if rule else code,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary},
        "help": {"text": documentation},
        "properties": {"tags": ["pytorch"], "precision": "very-high"},
    }


def _result(
    finding: Finding, report: Report, codes: list[str], mark: str, changes: list[Change] | None
) -> dict[str, Any]:
    where = region_in_file(finding, report)
    hint = f" {finding.hint[:1].upper()}{finding.hint[1:]}." if finding.hint else ""
    made: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": LEVELS[severity(finding)],
        "message": {"text": f"{finding.message.rstrip('.')}.{hint}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(finding.path)},
                    "region": {
                        "startLine": where.line,
                        "startColumn": where.column,
                        "endLine": where.line,
                        "endColumn": where.end_column,
                    },
                }
            }
        ],
        "partialFingerprints": {MARK: mark},
    }
    if changes:
        made["fixes"] = [
            {"description": {"text": "convert the training program"}, "artifactChanges": list(map(_artifact, changes))}
        ]
    return made


def _fixed(report: Report) -> dict[Finding, list[Change]]:
    """The changes that belong together, at the first of their loops: a second one would apply them twice."""
    fixed: dict[Finding, list[Change]] = {}
    waiting = {change.path: change for change in report.changes}
    for loop in report.of(Kind.LOOP):
        tied = group(loop.path, report.summaries)
        if loop.converts and (taken := [waiting.pop(path) for path in sorted(tied) if path in waiting]):
            fixed[loop] = taken
    return fixed


def _artifact(change: Change) -> dict[str, Any]:
    replacements = [
        {
            "deletedRegion": {
                "startLine": piece.first,
                "startColumn": 1,
                "endLine": piece.last,
                "endColumn": piece.end_column,
            },
            "insertedContent": {"text": piece.text},
        }
        for piece in pieces(change)
    ]
    return {"artifactLocation": {"uri": _uri(change.path)}, "replacements": replacements}


def _notification(problem: MigrateError) -> dict[str, Any]:
    made: dict[str, Any] = {"level": "error", "message": {"text": problem.said}}
    if problem.path:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(problem.path)}}
        if problem.line_of_file:
            physical["region"] = {"startLine": problem.line_of_file}
        made["locations"] = [{"physicalLocation": physical}]
    return made


def _uri(path: str) -> str:
    return urllib.parse.quote(os.fsencode(name_of(path)))
