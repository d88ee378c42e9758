"""A file of findings that are known already, so that a check of a large repository fails for new ones only.

A finding is known by its file, its code and the text of its line; how many of these there are is counted. So nothing
changes when lines move, and a second loop that reads the same is new.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from migrate.errors import UsageError, reason_of
from migrate.report.fingerprint import source_of
from migrate.report.groups import narrowed
from migrate.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.report.model import Finding, Report

VERSION = 1
AGAIN = "Write it anew: --baseline FILE --update-baseline."
OTHER = "Name another file, or delete it and write a new one: --update-baseline."
_START = re.compile(rb'\{\s*"version":\s*\d+,\s*"findings":')  # of each version, as `written` begins it
KINDS = (Kind.LOOP, Kind.LEFT, Kind.REVIEW, Kind.FAULT)  # what `--check` tells

Known: TypeAlias = Counter[tuple[str, str, str]]  # file, code, line


def is_ours(content: bytes) -> bool:
    """Whether a file that begins with these bytes was written here."""
    return _START.match(content) is not None


def read(path: Path) -> Known:
    """The findings of a file.

    Raises:
        UsageError: it cannot be read, or is not a baseline of this version.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise UsageError("this baseline is no ordinary file", "Name another file.", path=str(path))
        content = path.read_bytes()
    except FileNotFoundError:
        raise UsageError("there is no such baseline", "Write one: --update-baseline.", path=str(path)) from None
    except OSError as error:
        what = f"this baseline cannot be read: {reason_of(error)}"
        raise UsageError(what, "Name another file.", path=str(path)) from error
    way_out = AGAIN if is_ours(content) or not content else OTHER
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"this baseline cannot be read: {error}", way_out, path=str(path)) from error
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise UsageError(f"this is not a baseline of version {VERSION}", way_out, path=str(path))
    try:
        return Counter(dict(_entry(entry) for entry in document["findings"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"an entry of this baseline is not complete: {error!r}", way_out, path=str(path)) from error


def _entry(entry: dict[str, object]) -> tuple[tuple[str, str, str], int]:
    file, code, line, count = (entry[name] for name in ("file", "code", "line", "count"))
    if not (isinstance(file, str) and isinstance(code, str) and isinstance(line, str) and isinstance(count, int)):
        raise TypeError(f"file, code and line are texts, count a number: {entry}")
    return (file, code, line), count


def written(report: Report, path: Path) -> bytes:
    """The content of a file that holds the findings of a report, and what is known already of files beside it."""
    counted = _of_others(_earlier(path), report, path)
    counted.update(_key(finding, report, path) for finding in _wanted(report))
    findings = [
        {"file": file, "code": code, "line": line, "count": count}
        for (file, code, line), count in sorted(counted.items())
    ]
    return f"{json.dumps({'version': VERSION, 'findings': findings}, indent=2)}\n".encode()


def without(report: Report, known: Known, path: Path) -> tuple[Report, Known]:
    """The report without what is known; and what is known but not found any more, in files that were looked at."""
    left = known.copy()
    hidden: set[Finding] = set()
    for finding in _wanted(report):
        key = _key(finding, report, path)
        if left[key] > 0:
            left[key] -= 1
            hidden.add(finding)
    gone = +left - _of_others(left, report, path)
    return narrowed(report, lambda finding: finding not in hidden), gone


def _earlier(path: Path) -> Known:
    """What is known already: nothing where no baseline, or none of this version, can be read."""
    try:
        return read(path)
    except UsageError:
        return Counter()


def _of_others(known: Known, report: Report, path: Path) -> Known:
    """What is known of files that are there, and that a report has not looked at."""
    looked_at = {_name(source.real, path) for source in report.sources.values() if source.real is not None}
    folder = path.resolve().parent  # a baseline may be a link: its names go by where it lies
    return Counter({k: n for k, n in known.items() if k[0] not in looked_at and _is_there(folder / k[0])})


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _wanted(report: Report) -> Iterable[Finding]:
    """What is counted: a reason goes and stays with its loop."""
    loops = {finding.loop for finding in report.of(Kind.LOOP)} - {None}
    return [f for f in report.findings if f.kind is Kind.LOOP or (f.kind in KINDS and f.loop not in loops)]


def _key(finding: Finding, report: Report, path: Path) -> tuple[str, str, str]:
    source = report.sources.get(finding.path)
    real = (source.real if source is not None else None) or Path(finding.path).resolve()
    return _name(real, path), finding.code, source_of(finding, report)


def _name(real: Path, path: Path) -> str:
    """A file as the baseline at `path` names it."""
    return os.path.relpath(real, path.resolve().parent).replace(os.sep, "/")
