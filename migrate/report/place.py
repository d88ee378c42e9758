"""Where a finding stands, in the units of those who ask.

`ast` and reviewdog count columns in UTF-8 bytes, people and SARIF in characters. What is stored is characters; this is
the one place that converts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.report.model import Finding, Report

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Region:
    """What is underlined of the first line of a finding: its code from the column on, the end excluded."""

    line: int  # 1-based
    column: int  # 1-based, in characters
    end_column: int  # likewise, behind the last character
    text: str  # the whole line, without its end; empty where the source is not known
    has_mark: bool = False  # the file has a byte order mark before this line

    @property
    def code(self) -> str:
        """The source from the column on."""
        return self.text[self.column - 1 : self.end_column - 1]

    def in_bytes(self) -> tuple[int, int]:
        """Both columns as 1-based counts of UTF-8 bytes; a byte order mark counts."""
        before = len(self.text[: self.column - 1].encode()) + (len(BOM) if self.has_mark else 0)
        return before + 1, before + len(self.code.encode()) + 1


def region(finding: Finding, report: Report) -> Region:
    """The part of the finding's first line that it is about; without width where the source is not known.

    Of a notebook it is a line of the cell.
    """
    source = report.sources.get(finding.path)
    if source is not None and source.notebook is not None and finding.cell is not None:
        lines: Sequence[str] = source.notebook.lines(finding.cell)
    else:
        lines = source.lines if source else ()
    text = lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""
    end = max(len(text.rstrip()) + 1, finding.column)
    has_mark = source is not None and finding.line == 1 and source.content.startswith(BOM)
    return Region(finding.line, finding.column, end, text, has_mark)


def region_in_file(finding: Finding, report: Report) -> Region:
    """The same in the lines of the file, for those who show files: of a notebook, all of the line of its JSON."""
    source = report.sources.get(finding.path)
    if source is None or source.notebook is None or finding.cell is None:
        return region(finding, report)
    line, text = source.notebook.line_of_file(finding.cell, finding.line)
    column = len(text) - len(text.lstrip()) + 1
    return Region(line, column, len(text.rstrip()) + 1, text)
