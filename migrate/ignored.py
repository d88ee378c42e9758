"""What a project does not want to hear of, and so does not want converted: comments, and `per-file-ignores`.

A loop whose MIG001 is ignored stays as it is, and so do the files that are converted with it or not at all: the other
loops in these are told why (MIG909).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.codes import code
from migrate.errors import UsageError
from migrate.report.groups import group
from migrate.report.model import Finding, Kind
from migrate.source.comments import EVERY, ignores

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from migrate.options import Options
    from migrate.report.model import Outcome
    from migrate.source.project import SourceFile

BESIDE = "MIG909"


@dataclass(frozen=True, slots=True)
class Ignored:
    """By file: the codes, or beginnings of codes, that are not told, in some lines or in all."""

    lines: Mapping[str, Mapping[int, Sequence[str]]]
    files: Mapping[str, Sequence[str]]

    def __contains__(self, finding: Finding) -> bool:
        starts = [*self.files.get(finding.path, ()), *self.lines.get(finding.path, {}).get(finding.line, ())]
        return any(finding.code.startswith(start) for start in starts)

    def __bool__(self) -> bool:
        return bool(self.lines or self.files)


def ignored(files: Iterable[SourceFile], options: Options) -> Ignored:
    """What the files and the settings say."""
    lines: dict[str, Mapping[int, Sequence[str]]] = {}
    whole: dict[str, Sequence[str]] = {}
    for file in files:
        if told := ignores(file.content):
            lines[file.path] = {
                line: [meant for meant in map(_read, words) if isinstance(meant, str)] for line, words in told.items()
            }
        if file.real is not None:
            if codes := [code for where, codes in options.per_file_ignores if where.match(file.real) for code in codes]:
                whole[file.path] = codes
    return Ignored(lines, whole)


def mistyped(files: Iterable[SourceFile]) -> Iterator[str]:
    """What is written in the files' comments and is no rule, so that nothing is ignored by it."""
    for file in files:
        told: set[str] = set()
        for line, words in ignores(file.content).items():
            for word in words:
                if word not in told and isinstance(error := _read(word), UsageError):
                    told.add(word)
                    yield f"{file.path}:{line}: in `# migrate: ignore[...]`, {error}"


def _read(word: str) -> str | UsageError:
    """The code, or beginning of codes, that a word of a comment means."""
    try:
        return code(word) if word not in EVERY else word
    except UsageError as error:
        return error


def kept_back(outcome: Outcome, ignored: Ignored) -> Mapping[str, Finding]:
    """The files that stay as they are because of an ignored loop, each with one such loop."""
    found: dict[str, Finding] = {}
    for loop in outcome.findings:
        if loop.kind is Kind.LOOP and loop in ignored:
            for path in sorted(group(loop.path, outcome.summaries)):
                found.setdefault(path, loop)
    return found


def told(findings: Sequence[Finding], ignored: Ignored, kept: Mapping[str, Finding]) -> tuple[Finding, ...]:
    """The findings without the ignored ones and their reasons; loops that stay because of these are told of them."""
    silent = {f.loop for f in findings if f.kind is Kind.LOOP and f in ignored} - {None}
    made = []
    for finding in findings:
        if finding in ignored or finding.loop in silent:
            continue
        is_kept = finding.kind is Kind.LOOP and finding.path in kept
        made.append(replace(finding, hint="") if is_kept else finding)
        if is_kept:
            made.append(_beside(finding, kept[finding.path]))
    return tuple(made)


def _beside(finding: Finding, other: Finding) -> Finding:
    why = f"the loop at {other.path}:{other.line} is ignored, and both are converted together or not at all"
    way_out = "take its `# migrate: ignore` out, or move it to a program of its own"
    place = (finding.path, finding.line, finding.column, finding.end_line)
    return Finding(BESIDE, *place, why, way_out, Kind.LEFT, loop=finding.loop)
