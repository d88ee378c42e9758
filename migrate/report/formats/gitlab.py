"""`gitlab`: GitLab's code quality report, which it shows in merge requests.

Entries with one fingerprint would be shown once, so each has its own, which does not go by the line's number.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from migrate.report.diff import name_of
from migrate.report.fingerprint import fingerprints
from migrate.report.place import region_in_file
from migrate.report.severity import Severity, severity

if TYPE_CHECKING:
    from migrate.report.formats.about import About
    from migrate.report.model import Report

WORDS = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}


def rendered(report: Report, about: About) -> str:
    """The list of entries, with a line feed at its end."""
    names = {finding.path: name_of(finding.path) for finding in report.findings}
    entries = [
        {
            "description": f"{finding.message}{f' ({finding.hint})' if finding.hint else ''}",
            "check_name": finding.code,
            "fingerprint": mark,
            "severity": WORDS[severity(finding)],
            "location": {"path": names[finding.path], "lines": {"begin": region_in_file(finding, report).line}},
        }
        for finding, mark in zip(report.findings, fingerprints(report, names), strict=True)
    ]
    for problem in report.problems:
        name = name_of(problem.path) if problem.path else "."
        text = f"{name}\0{problem.what}"
        entries.append(
            {
                "description": problem.said,
                "check_name": "error",
                "fingerprint": hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32],
                "severity": "blocker",
                "location": {"path": name, "lines": {"begin": max(problem.line_of_file, 1)}},
            }
        )
    return json.dumps(entries, indent=2) + "\n"
