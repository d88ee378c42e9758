"""Where the lines of a file that was made ready come from, and findings told with these."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from migrate.alone.pen import CODE
from migrate.report.model import Edit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from migrate.report.map import Place
    from migrate.report.model import Finding, Summary

_Beginning = tuple[int, bytes]
_NUMBERS = re.compile(r"\b(lines? )(\d+(?:(?:, | and )\d+)*)")


def _likest(old: Sequence[_Beginning], places: Sequence[int], line: _Beginning, otherwise: int) -> int:
    """The nearest line of some that begins as a line does, with its indentation and its first word."""
    alike = [place for place in places if old[place] == line]
    return min(alike, key=lambda place: abs(place - otherwise), default=otherwise)


def _beginning(line: bytes) -> _Beginning:
    return len(line) - len(line.lstrip()), line.split(maxsplit=1)[0] if line.strip() else b""


class Lines:
    """The original's line of each line of a file."""

    def __init__(self, before: bytes, after: bytes) -> None:
        old, new = before.splitlines(), after.splitlines()
        beginnings = [*map(_beginning, old)]
        self._of: dict[int, int] = {}
        for _, start, stop, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            for number in range(first, last):
                place = min(start + number - first, max(stop - 1, start))
                self._of[number + 1] = _likest(beginnings, range(start, stop), _beginning(new[number]), place) + 1

    def of(self, line: int) -> int:
        """The original's line."""
        return self._of.get(line, line)

    def told(self, text: str) -> str:
        """A message with the original's lines."""
        return _NUMBERS.sub(lambda m: m[1] + re.sub(r"\d+", lambda n: str(self.of(int(n[0]))), m[2]), text)


def retold_findings(findings: Iterable[Finding], lines: Mapping[str, Lines]) -> list[Finding]:
    """Findings with the lines of the original files."""
    return [_retold(finding, lines) for finding in findings]


def retold_summaries(summaries: Iterable[Summary], lines: Mapping[str, Lines]) -> list[Summary]:
    """Summaries with these lines."""

    def at(place: Place) -> Place:
        return replace(place, line=lines[place.path].of(place.line)) if place.path in lines else place

    found = []
    for summary in summaries:
        text = lines[summary.path].told(summary.text) if summary.path in lines else summary.text
        for path, of in lines.items():
            text = _with_path(text, path, of)
        drawn = None if summary.map is None else summary.map.moved(at)
        found.append(replace(summary, text=text, map=drawn))
    return found


def retold_edits(edits: Iterable[Edit], before: bytes, after: bytes) -> list[Edit]:
    """Edits of a file that was made ready, in the lines of the original, with what made it ready."""
    lines = Lines(before, after)
    found = [replace(edit, line=lines.of(edit.line), end_line=lines.of(edit.end_line)) for edit in edits]
    codes = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()
    found += [Edit(CODE, start + 1, max(stop, start + 1)) for tag, start, stop, _, _ in codes if tag != "equal"]
    return sorted(found, key=lambda edit: (edit.line, edit.end_line, edit.code))


def _retold(finding: Finding, lines: Mapping[str, Lines]) -> Finding:
    message, hint, loop = finding.message, finding.hint, finding.loop
    for path, of in lines.items():
        message, hint = _with_path(message, path, of), _with_path(hint, path, of)
        loop = _with_path(loop, path, of) if loop is not None else None
    own = lines.get(finding.path)
    if own is None:
        return replace(finding, message=message, hint=hint, loop=loop)
    return replace(
        finding,
        line=own.of(finding.line),
        end_line=own.of(finding.end_line),
        message=own.told(message),
        hint=own.told(hint),
        loop=loop,
    )


def _with_path(text: str, path: str, lines: Lines) -> str:
    """`train.py:31` in a text, with the original's line."""
    return re.sub(rf"({re.escape(path)}:)(\d+)", lambda m: m[1] + str(lines.of(int(m[2]))), text)
