"""What is found in a text, and its whole conversion: for an editor, whose texts go before the files on the disk."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate import pipeline
from migrate.configuration import configured
from migrate.options import Mode, Options
from migrate.report.groups import group
from migrate.report.model import Finding, Kind
from migrate.source.comments import skips
from migrate.source.disk import Disk
from migrate.source.files import Selection
from migrate.source.parts import parts, reached
from migrate.source.project import Project, SourceFile, source_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from migrate.report.model import Change, Report


BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Found:
    """What is shown of a text."""

    report: Report
    findings: Sequence[Finding]
    convertible: Sequence[tuple[int, int]]  # first and last lines, 1-based, from which the conversion can be asked for


def found(path: str, texts: Mapping[str, str]) -> Found:
    """What `--check` says of one of the texts: Python, given by absolute path, and taken for named.

    Raises:
        MigrateError: the settings of the project are wrong.
    """
    contents = _contents(texts)
    project = _program(path, contents)
    report = pipeline.convert(project, _options(path, Mode.CHECK))
    report = replace(report, sources={file.path: file for file in project.named})
    converts = any(loop.converts for loop in report.of(Kind.LOOP))
    own = [finding for finding in report.findings if finding.path == path and finding.kind is not Kind.NOTE]
    if own or not converts:
        return Found(report, own, [(loop.line, loop.end_line) for loop in own if loop.converts])
    alone = pipeline.run_text(contents[path], path, Options(mode=Mode.CHECK), beside=contents)
    return Found(alone, alone.findings, [(each.line, each.end_line) for each in alone.findings])  # what leads to a loop


def converted(path: str, texts: Mapping[str, str]) -> tuple[Sequence[tuple[Path, Change]], Report]:
    """The changes that convert the programs of one of the texts, with the files they are for; and what was found.

    Raises:
        MigrateError: the settings of the project are wrong.
    """
    project = _program(path, _contents(texts))
    report = pipeline.convert(project, _options(path, Mode.DIFF))
    tied = group(path, report.summaries)
    real = {each.path: each.real for each in project.named if each.real is not None}
    return [(real[change.path], change) for change in report.changes if change.path in tied], report


def _options(path: str, mode: Mode) -> Options:
    return configured(Options(mode=mode), [Path(path).resolve().parent])


def _program(path: str, contents: Mapping[str, bytes]) -> Project:
    """A text with all that it has to do with: other texts that are open, and the modules that they import."""
    disk, options = Disk(contents), _options(path, Mode.CHECK)
    selection = Selection(options.exclude, options.force_exclude)
    texts = {Path(each).resolve(): each for each in [path, *contents]}
    opened = [source_file(each, contents[each], real=real) for real, each in texts.items()]
    named = {
        file.real: SourceFile(file.path, file.content, real=file.real)
        for file in reached(Project(opened, disk=disk))
        if file.real is not None and not selection.excludes(file.real) and not skips(file.content)
    }
    whole = Project(list(named.values()), disk=disk)
    own = [part for part in parts(whole) if any(file.path == path for file in part.named)]
    return Project(own[0].named if own else [], disk=disk)


def _contents(texts: Mapping[str, str]) -> Mapping[str, bytes]:
    """The bytes of texts, by path and by path without links: in the encoding that a text names."""
    made: dict[str, bytes] = {}
    for path, text in texts.items():
        made[path] = made[str(Path(path).resolve())] = _encoded(text)
    return made


def _encoded(text: str) -> bytes:
    content = text.encode(errors="surrogatepass")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return text.removeprefix(BOM).encode(encoding)
    except (SyntaxError, UnicodeEncodeError):
        return content  # what is wrong with it is said by the parser
