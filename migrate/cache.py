"""Results of earlier runs, for as long as they are right.

A result belongs to a part of a project: files that have to do with each other. It is kept with everything that it
rests on, and used again only where all of that is as it was: the named files and their contents, the settings, migrate,
Python and libcst, the current folder, and each question that was asked of the disk, with its answer (`source/disk.py`).
So a file that appears where Python would look first, or beside the others and imports from them, makes a result stale.

What would be changed is kept, too, with the new contents: they have passed their checks when `migrate FILE` shows them,
and `--write` after it has them. A run that writes keeps none: the files are others now.

The results of all parts are kept together, too, with what was asked to tell them apart: where nothing has changed, this
need not be done again.

Entries are JSON, with a checksum: what is damaged, cannot be read or cannot be written is as if it were not there.
Their names go by the paths of the part, so an entry takes the place of the one that has become stale.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from dataclasses import astuple, fields
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate import __version__
from migrate.errors import SourceError
from migrate.options import Mode
from migrate.report.model import OUR_BUG, Change, Edit, Finding, Kind, Report, Summary
from migrate.source.above import TOP_MARKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from migrate.options import Options
    from migrate.source.disk import Disk
    from migrate.source.project import Project, SourceFile

    Notes = Sequence[tuple[str, str, str]]  # question, path, answer

NAME = ".migrate_cache"
MOST = 4000  # entries; where there are more, the older half goes
MOST_PARSED = 100_000  # contents that are known to parse
_SIZE = 16  # bytes of a digest
_FILES = {
    ".gitignore": "*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Results of migrate. It may be deleted at any time; see https://bford.info/cachedir/.\n",
}
_PARSED = "parsed"
_PART, _WHOLE = "part", "whole"  # what an entry is about


def folder_for(paths: Iterable[Path], named: str = "") -> Path | None:
    """Where results are kept: the folder that is named, else one in the top folder of the project; None without one."""
    if named:
        return Path(named).absolute()
    folders = sorted(set(paths))
    if not folders or len({folder.anchor for folder in folders}) != 1:
        return None
    common = Path(os.path.commonpath(folders))
    tops = (place for place in (common, *common.parents) if any(os.path.exists(place / mark) for mark in TOP_MARKS))
    top = next(tops, None)
    return top / NAME if top is not None else None


class Cache:
    """The results in a folder, for runs with one set of options; without a folder there are none."""

    def __init__(self, folder: Path | None, options: Options) -> None:
        is_known = options.known is None or bool(options.known_text)
        self._folder = folder if is_known and not options.report else None
        self._basis = _digest(*_environment(options)) if self._folder else ""
        self._writes = options.mode is Mode.WRITE
        self._answers: dict[tuple[str, str], str] = {}
        self._parsed: set[str] | None = None
        self._new: set[str] = set()

    def found(self, part: Project) -> tuple[Report, Notes] | None:
        """What was found in a part, if it would be found again, and what that rests on."""
        known = self._known(part, _PART)
        return (known[0][0], known[1]) if known is not None else None

    def found_in_all(self, project: Project) -> Sequence[Report] | None:
        """What was found in all parts of a project, if it would be found again."""
        known = self._known(project, _WHOLE)
        return known[0] if known is not None else None

    def notes(self, part: Project) -> Notes:
        """What a part has asked the disk until now, with the answers."""
        walked = {("walked", f"{count} {top}") for top, count in part.disk.walked.items()}
        asked = sorted({*part.disk.asked, *walked}) if self._folder else ()
        return [(question, path, self._told(part, part.disk, question, path)) for question, path in asked]

    def keep(self, part: Project, report: Report, notes: Notes) -> None:
        """Keep what was found in a part. Not where a file is about to be written, or went wrong: that is done again."""
        self._keep(part, _PART, [report], notes)

    def keep_all(
        self, project: Project, parts: Sequence[Project], reports: Sequence[Report], notes: Sequence[Notes]
    ) -> None:
        """Keep what was found in all parts, if none is to be done again; `notes` are those of each part."""
        if self._folder is not None and (told := self._of_all(project, parts, notes)) is not None:
            self._keep(project, _WHOLE, reports, told)

    def _of_all(self, project: Project, parts: Sequence[Project], notes: Sequence[Notes]) -> Notes | None:
        """What was asked, for the parts and to tell them apart; None where the answer has changed meanwhile.

        Which files are hidden from which part follows from the rest.
        """
        told = {(question, path): answer for question, path, answer in self.notes(project) if question != "hidden"}
        for part, each in zip(parts, notes, strict=True):
            for question, path, answer in each:
                now = answer
                if question == "walked":  # without what is hidden from the part
                    if self._told(part, part.disk, question, path) != answer:
                        return None
                    now = self._told(project, project.disk, question, path)
                if question != "hidden" and told.setdefault((question, path), now) != now:
                    return None
        return [(*asked, answer) for asked, answer in sorted(told.items())]

    def _known(self, part: Project, what: str) -> tuple[Sequence[Report], Notes] | None:
        if self._folder is None:
            return None
        entry = _read(self._folder / self._name(part, what))
        try:
            if entry is None or entry["contents"] != _contents(part):
                return None
            disk = part.disk.noting()  # what was asked then need not be asked now
            if any(self._told(part, disk, question, path) != answer for question, path, answer in entry["asked"]):
                return None
            old = {file.path: file.content for file in part.named}
            return [_report(each, old) for each in entry["reports"]], entry["asked"]
        except (AttributeError, KeyError, TypeError, ValueError, IndexError):  # of another shape: not one of ours
            return None

    def _keep(self, part: Project, what: str, reports: Sequence[Report], notes: Notes) -> None:
        if self._folder is None or not all(map(_may_be_kept, reports)):
            return
        if self._writes and any(report.changes for report in reports):
            return
        entry = {"contents": _contents(part), "asked": notes, "reports": list(map(_data, reports))}
        _write(self._folder, self._name(part, what), entry)

    def parses(self, file: SourceFile) -> bool:
        """Whether a file's content was seen to parse."""
        if self._folder is None:
            return False
        if self._parsed is None:
            listed = _read(self._folder / self._parsed_name)
            self._parsed = set(map(str, listed)) if isinstance(listed, list) else set()
        content = _digest(file.content)
        self._new.add(content)
        return content in self._parsed

    def close(self, wrong: Iterable[SourceFile] = ()) -> None:
        """Keep which of the files that were asked for parse: all but these."""
        self._new -= {_digest(file.content) for file in wrong}
        if self._folder is None or self._parsed is None or self._new <= self._parsed:
            return
        together = self._new | self._parsed
        _write(self._folder, self._parsed_name, sorted(together if len(together) <= MOST_PARSED else self._new))

    @property
    def _parsed_name(self) -> str:
        return f"{_PARSED}-{_digest(sys.version)}.json"  # whatever the options, and wherever the run

    def _name(self, part: Project, what: str) -> str:
        files = (f"{file.path}\n{file.real}\n{file.found}\n{file.notebook is not None}" for file in part.named)
        return f"{_digest(self._basis, what, *files)}.json"

    def _told(self, part: Project, disk: Disk, question: str, path: str) -> str:
        """The answer to a question, as it is compared."""
        if question == "hidden":
            return str(Path(path) in part.hidden)
        if question == "walked":
            count, top = path.split(" ", 1)
            hidden = set(map(str, part.hidden))
            return _digest(*(one for one in islice(disk.sources(top), int(count)) if one not in hidden))
        asked = question, path
        if asked not in self._answers:
            self._answers[asked] = _answer(disk.answer(asked))
        return self._answers[asked]


def _may_be_kept(report: Report) -> bool:
    is_bug = report.causes or any(finding.code == OUR_BUG for finding in report.findings)
    return not is_bug and not any(change.cells for change in report.changes)


def _answer(given: object) -> str:
    if isinstance(given, frozenset):
        return _digest(*sorted(given))
    return _digest(given) if isinstance(given, bytes) else str(given)


def _digest(*given: str | bytes) -> str:
    """A short name for what is given, each with its length, so that no two lists are alike."""
    made = hashlib.blake2b(digest_size=_SIZE)
    for one in given:
        content = one.encode(errors="surrogatepass") if isinstance(one, str) else one
        made.update(b"%d " % len(content))
        made.update(content)
    return made.hexdigest()


def _contents(part: Project) -> str:
    return _digest(*(file.content for file in part.named))


def _environment(options: Options) -> Sequence[str]:
    """All that a result rests on beside files."""
    told = (f"{each.name}={getattr(options, each.name)!r}" for each in fields(options) if each.name not in _ELSEWHERE)
    edits = f"edits={options.mode is not Mode.CHECK}"
    return [__version__, _stamp(), sys.version, sys.implementation.name, str(Path.cwd().resolve()), edits, *told]


#: What the settings are made of is in `known_text`, and of the mode counts whether edits are made; the others say how a
#: run goes on, not what is found.
_ELSEWHERE = frozenset({"known", "config", "given", "is_settled", "jobs", "cache", "exclude", "baseline", "mode"})


def _stamp() -> str:
    """Which migrate this is, and which libcst: a version alone does not tell a work tree from another."""
    files = sorted(_own_files(os.path.dirname(__file__)))
    spec = find_spec("libcst")
    if spec is not None and spec.origin is not None:
        files.append(spec.origin)
    told = []
    for file in files:
        with contextlib.suppress(OSError):
            status = os.stat(file)
            told.append(f"{file} {status.st_size} {status.st_mtime_ns}")
    return _digest(*told)


def _own_files(folder: str) -> Iterator[str]:
    """The files of a package; by `scandir`, since this is a large part of a run in which nothing is new."""
    try:
        with os.scandir(folder) as listing:
            entries = list(listing)
    except OSError:  # in an archive: there the version has to do
        return
    for entry in entries:
        if entry.name.endswith(".py"):
            yield entry.path
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _own_files(entry.path)


# --- entries --------------------------------------------------------------------------------------------------------


def _data(report: Report) -> Mapping[str, Any]:
    """A report, as JSON has it."""
    problems = [(error.what, error.way_out, error.path, error.line, error.cell) for error in report.problems]
    return {
        "findings": [[getattr(finding, name) for name in _FINDING] for finding in report.findings],
        "summaries": [[summary.path, summary.text, summary.files, summary.parts] for summary in report.summaries],
        "changes": [
            (change.path, change.new.decode(_BYTES), change.lost_comments, [astuple(edit) for edit in change.edits])
            for change in report.changes
        ],
        "touched": report.touched,
        "problems": problems,
        "ignored": report.ignored,
    }


def _report(data: Mapping[str, Any], old: Mapping[str, bytes]) -> Report:
    """The report that data were made of, about files with these contents."""
    return Report(
        findings=tuple(_finding(dict(zip(_FINDING, each, strict=True))) for each in data["findings"]),
        summaries=tuple(Summary(p, text, tuple(files), tuple(parts)) for p, text, files, parts in data["summaries"]),
        changes=tuple(
            Change(path, old[path], new.encode(_BYTES), tuple(lost), edits=tuple(Edit(*edit) for edit in edits))
            for path, new, lost, edits in data["changes"]
        ),
        touched=tuple(data["touched"]),
        problems=tuple(
            SourceError(what, way_out, path=path, line=line, cell=cell)
            for what, way_out, path, line, cell in data["problems"]
        ),
        ignored=data["ignored"],
    )


_BYTES = "latin-1"  # has a character for each byte
_FINDING = tuple(each.name for each in fields(Finding))


def _finding(data: dict[str, Any]) -> Finding:
    return Finding(**{**data, "kind": Kind(data["kind"])})


def _read(path: Path) -> Any:
    """What an entry holds; None if there is none, or it is damaged."""
    try:
        checksum, _, content = path.read_bytes().partition(b"\n")
        return json.loads(content) if checksum.decode() == _digest(content) else None
    except (OSError, ValueError):
        return None


def _write(folder: Path, name: str, entry: object) -> None:
    """Put an entry in its place in one step. A folder that cannot be written keeps nothing."""
    content = json.dumps(entry, separators=(",", ":"), default=_plain).encode()
    beside = folder / f".{name}.{os.getpid()}"
    try:
        _make(folder)
        with open(beside, "wb") as stream:
            stream.write(_digest(content).encode() + b"\n" + content)
        os.replace(beside, folder / name)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()


def _plain(value: object) -> object:
    if isinstance(value, Kind):
        return value.value
    raise TypeError(f"{value!r} is nothing that an entry holds")


def _make(folder: Path) -> None:
    """The folder, with a note to git and to programs that back up; old entries go where it has become large."""
    if not (folder / ".gitignore").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _FILES.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    entries = [entry for entry in os.scandir(folder) if entry.name.endswith(".json")]
    if len(entries) > MOST:
        entries.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in entries[: len(entries) // 2]:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
