"""What a finding is called across commits: not by its line's number, which changes with every edit above it."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from migrate.report.place import region

if TYPE_CHECKING:
    from collections.abc import Mapping

    from migrate.report.model import Finding, Report

DIGITS = 32  # of a hexadecimal number: 128 bits


def source_of(finding: Finding, report: Report) -> str:
    """The finding's line without what formatters change: indentation, and more than one blank."""
    return " ".join(region(finding, report).text.split())


def fingerprints(report: Report, names: Mapping[str, str]) -> list[str]:
    """A name for each finding of the report, in order: of its file, code, line's text, and which of these it is.

    `names` gives each path as it is everywhere, on each machine.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    made = []
    for finding in report.findings:
        key = (names[finding.path], finding.code, source_of(finding, report))
        text = "\0".join((*key, str(seen[key])))
        made.append(hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:DIGITS])
        seen[key] += 1
    return made
