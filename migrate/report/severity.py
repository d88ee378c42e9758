"""How grave a finding is, in the three grades that all formats have words for."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from migrate.report.model import OUR_BUG, Kind

if TYPE_CHECKING:
    from migrate.report.model import Finding


class Severity(IntEnum):
    """From the least to the worst."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


_OF = {
    Kind.LOOP: Severity.WARNING,
    Kind.LEFT: Severity.WARNING,
    Kind.REVIEW: Severity.WARNING,
    Kind.FAULT: Severity.ERROR,
    Kind.NOTE: Severity.NOTE,
}


def severity(finding: Finding) -> Severity:
    """The grade of a finding: code that is wrong is an error, as is what only we can mend."""
    return Severity.ERROR if finding.code == OUR_BUG else _OF[finding.kind]
