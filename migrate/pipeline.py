"""A run on one screen:

    bytes → Project → Facts → Plan → one transformer per touched file → self-check → Report → write (all or nothing)

What can go wrong in one file costs that file, and those that must change with it; the others go on.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.configuration import configured, folders_of
from migrate.engine import ENGINE, Conversion, Engine
from migrate.errors import EditError, MigrateError, SourceError, UsageError
from migrate.ignored import ignored, kept_back, mistyped, told
from migrate.options import Mode, Options, Question
from migrate.partwise import Progress, Work, results, silently
from migrate.report.cells import DISORDER, in_cells, notebooks_of, said
from migrate.report.groups import group
from migrate.report.model import NOT_EDITABLE, OUR_BUG, Change, Finding, Kind, Report
from migrate.source.comments import skips
from migrate.source.disk import Disk
from migrate.source.files import Selection, load
from migrate.source.memory import uncollected
from migrate.source.parse import DEEPEST
from migrate.source.project import Project, SourceFile, source_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

FRAMES = 11 * DEEPEST  # Python frames: up to ten a level of the deepest tree that `parse` lets through, and our own
SMALL = 500_000  # bytes of sources: what is made of them and dropped may stay in memory until they are done


def run(
    paths: Sequence[str],
    options: Options,
    engine: Engine = ENGINE,
    progress: Progress = silently,
    accept: Callable[[Report], Report] = lambda report: report,
) -> Report:
    """Everything the command line does with files: read them, convert them, and in `Mode.WRITE` save them.

    `accept` is asked before anything is saved, and gives the report with the changes that are to be.
    """
    options = configured(options, folders_of(paths))
    selection = Selection(options.exclude, options.force_exclude, options.gitignore)
    found = load(paths, lambda count: progress("reading", count, 0), selection)
    if options.mode is Mode.WRITE:
        from migrate.source.save import clean  # most runs save nothing

        clean(file.folder for file in found.files)
    report = convert(Project(found.files), options, engine, progress)
    report = replace(
        report,
        problems=(*found.errors, *report.problems),
        remarks=(*found.remarks, *report.remarks),
        files=len(found.files),
        sources={file.path: file for file in found.files},
    )
    if options.mode is not Mode.WRITE or not report.changes:
        return report
    report = accept(report)
    return _write(report, found.files) if report.changes else report


def run_text(
    content: bytes, name: str, options: Options, engine: Engine = ENGINE, beside: Mapping[str, bytes] | None = None
) -> Report:
    """The same for text that is not read from a file; `name` is where it will be, or empty. Nothing is written.

    `beside`: contents that go before those on the disk, by absolute path without links.
    """
    try:
        file = source_file(name or "<stdin>", content, real=Path(name).resolve() if name else None)
    except SourceError as error:
        return Report(problems=(error,), files=1)
    options = configured(options, [file.folder])
    selection = Selection(options.exclude, options.force_exclude)
    if skips(file.content) or (name and selection.forbids(Path(name))):
        return Report(files=1)
    report = convert(
        Project([file], disk=Disk(beside)), replace(options, cache=False), engine
    )  # each stroke of a key would be another
    return replace(report, sources={file.path: file})


def explain_role(asked: Question, paths: Sequence[str], options: Options | None = None) -> str:
    """What a name of a line is, with the chain of evidence; `paths` are further files of the program.

    `options` say which settings count, and which files of folders.

    Raises:
        MigrateError: the file cannot be read or parsed, or does not hold the name on that line.
    """
    from migrate.analysis import analyse  # `migrate --help` needs none of these
    from migrate.analysis.known import TABLES
    from migrate.report.role import explained

    options = configured(options or Options(), folders_of([asked.path, *paths]))
    selection = Selection(options.exclude, gitignore=options.gitignore)  # what is asked about is always read
    found = load([asked.path, *paths], selection=selection)
    if found.errors:
        raise found.errors[0]
    if not found.files or not Path(asked.path).is_file():
        raise UsageError(f"{asked.path} is not a file", "Name one file: FILE:LINE:NAME.")
    project = Project(found.files)
    with deep_stack():
        file = found.files[0]
        if file.error:
            raise file.error
        line, notebooks = _line(asked, file), notebooks_of(found.files)
        try:
            return said(explained(analyse(project, options.known or TABLES), file, line, asked.name), notebooks)
        except UsageError as error:
            own = file.notebook
            raise UsageError(said(error.what, notebooks, own), said(error.way_out, notebooks, own)) from error


def _line(asked: Question, file: SourceFile) -> int:
    """The line of the file that is asked about: of a notebook, of the module that its cells make."""
    if file.notebook is None:
        return asked.line
    line = file.notebook.line(asked.cell, asked.line)
    if not line:
        what = f"{asked.path} has no line {asked.line} in cell {asked.cell}"
        raise UsageError(what, "Name a line of a code cell, counting all cells: FILE.ipynb:cell 3:12:NAME.")
    return line


def convert(project: Project, options: Options, engine: Engine = ENGINE, progress: Progress = silently) -> Report:
    """What would become of the project's named files. Nothing is written but results for the next run."""
    with deep_stack():
        work = Work(engine.parts, lambda part, say: _convert(part, options, engine, say), engine.ready)
        made, errors = results(project, options, progress, work)
    order = {file.path: number for number, file in enumerate(project.named)}
    notebooks = notebooks_of(project.named)
    findings = (finding for report in made for finding in report.findings)
    summaries = (summary for report in made for summary in report.summaries)
    changes = (change for report in made for change in report.changes)
    touched = (path for report in made for path in report.touched)
    whole = Report(
        findings=tuple(sorted(findings, key=lambda f: (f.path, f.line, f.column, f.code))),
        summaries=tuple(sorted(summaries, key=lambda summary: order.get(summary.path, len(order)))),
        changes=tuple(sorted(changes, key=lambda change: order[change.path])),
        touched=tuple(sorted(touched, key=order.__getitem__)),
        problems=errors,
        causes=tuple(cause for report in made for cause in report.causes),
        files=len(project.named),
        ignored=sum(report.ignored for report in made),
        remarks=tuple(said(remark, notebooks) for remark in mistyped(project.named)),
    )
    told = in_cells(whole, notebooks)
    return replace(told, findings=tuple(f for f in told.findings if f.code != DISORDER or options.wants(DISORDER)))


def _convert(project: Project, options: Options, engine: Engine, say: Callable[[str], None]) -> Report:
    """The same for files that have to do with each other."""
    is_small = sum(len(file.content) for file in project.named) < SMALL
    with uncollected() if is_small else nullcontext():
        return _converted(project, options, engine, say)


def _converted(project: Project, options: Options, engine: Engine, say: Callable[[str], None]) -> Report:
    planned = _plan(project, options, engine)
    silent = ignored(project.named, options)
    kept_out = kept_back(planned.conversion.outcome, silent) if silent else {}
    planned = replace(planned, broken={**dict.fromkeys(kept_out, _Failure("")), **planned.broken})
    edits = options.mode is not Mode.CHECK or options.report
    changes, broken = _edit(planned, options, engine, say) if edits else ({}, dict(planned.broken))
    outcome = planned.conversion.outcome
    kept = [path for path in planned.conversion.touched if path not in broken]
    said = _told(outcome.findings, broken)
    findings = told(said, silent, kept_out) if silent else said
    return Report(
        findings=findings,
        ignored=sum(finding not in findings for finding in said if finding in silent),
        summaries=outcome.summaries,
        changes=tuple(changes[path] for path in kept if path in changes),
        touched=tuple(kept),
        problems=project.errors,
        causes=tuple(failure.cause for failure in broken.values() if failure.cause),
    )


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a file's edits are dropped."""

    reason: str
    way_out: str = ""
    cause: Exception | None = None
    is_our_bug: bool = True
    code: str = NOT_EDITABLE  # where it is none
    line: int = 1
    with_it: tuple[str, ...] = ()  # paths that are dropped because of it


@dataclass(frozen=True, slots=True)
class _Planned:
    project: Project
    conversion: Conversion
    broken: Mapping[str, _Failure] = field(default_factory=dict)


def _plan(project: Project, options: Options, engine: Engine) -> _Planned:
    """The plan of the whole project; where that fails, of the files that do not fail when they are alone."""
    try:
        conversion = engine.plan(project, options)
        return _Planned(project, conversion, {path: _failure(error) for path, error in conversion.broken.items()})
    except Exception as error:  # noqa: BLE001 (a bug of ours in one file must not cost the others)
        whole = error
    broken = {file.path: failure for file in project.files if (failure := _alone(file, project, options, engine))}
    rest = project.without(frozenset(broken))
    try:
        return _Planned(rest, engine.plan(rest, options), broken)
    except Exception:  # noqa: BLE001 (likewise)
        return _Planned(project, Conversion(), {file.path: _failure(whole) for file in project.files})


def _alone(file: SourceFile, project: Project, options: Options, engine: Engine) -> _Failure | None:
    others = frozenset(other.path for other in project.named if other is not file)
    try:
        engine.plan(project.without(others), options)
    except Exception as error:  # noqa: BLE001 (this is how the culprit is found)
        return _failure(error)
    return None


def _edit(
    planned: _Planned, options: Options, engine: Engine, say: Callable[[str], None]
) -> tuple[dict[str, Change], dict[str, _Failure]]:
    """The new content of every touched file that passes its checks, and why others do not."""
    conversion = planned.conversion
    broken = dict(planned.broken)
    changes: dict[str, Change] = {}
    files = {file.path: file for file in planned.project.named}
    for path in conversion.touched:
        say("converting")
        made = _apply(files[path], conversion, options, engine)
        if isinstance(made, _Failure):
            broken[path] = made
        else:
            changes[path] = made
    _drop(changes, broken, conversion)
    say("checking")
    while failures := _second_run(planned, changes, options, engine):
        broken.update(failures)
        _drop(changes, broken, conversion)
    return changes, broken


def _apply(file: SourceFile, conversion: Conversion, options: Options, engine: Engine) -> Change | _Failure:
    """One file's new content, checked by itself."""
    try:
        applied = engine.apply(file, conversion)
        edits = engine.edits(file, conversion)
        change = Change(file.path, file.content, applied.content, applied.lost_comments, edits=tuple(edits))
        failures = engine.check(file, change, conversion)
        if options.notebook_launcher and file.notebook is not None and not failures:
            change = replace(change, new=engine.start(file, change.new, options))
            failures = file.notebook.faults(change.new)
    except Exception as error:  # noqa: BLE001 (a bug of ours in one file must not cost the others)
        return _failure(error)
    if change.new == change.old:
        failures = ["edits were planned that change nothing", *failures]
    return _Failure("; ".join(failures)) if failures else change


def _second_run(
    planned: _Planned, changes: Mapping[str, Change], options: Options, engine: Engine
) -> dict[str, _Failure]:
    """What a run on the new contents still wants to do in them; it must want nothing."""
    if not changes:
        return {}
    again = planned.project.replaced({path: change.new for path, change in changes.items()})
    unparsable = {f.path: _failure(f.error) for f in again.named if f.path in changes and f.error}
    if unparsable:
        return unparsable
    try:
        second = engine.plan(again, replace(options, mode=Mode.CHECK, report=False))  # nobody reads what it understands
    except Exception as error:  # noqa: BLE001 (the first run went well, so the result is at fault)
        return dict.fromkeys(changes, _failure(error))
    failures = {path: _Failure("a second run would change the result again") for path in second.touched}
    allowed = Counter(loop.path for loop in _loops(planned.conversion) if not loop.converts)
    flagged = Counter(loop.path for loop in _loops(second))
    for path in flagged - allowed:
        failures.setdefault(path, _Failure("a second run still finds a plain training loop that was to be converted"))
    there = Counter(fault.path for fault in planned.conversion.outcome.faults)
    for path in Counter(fault.path for fault in second.outcome.faults if fault.path in changes) - there:
        fault = next(fault for fault in second.outcome.faults if fault.path == path)
        failures.setdefault(path, _as_refusal(fault, changes[path]))
    return {path: failure for path, failure in failures.items() if path in changes}


def _as_refusal(fault: Finding, change: Change) -> _Failure:
    """A mistake that is seen in the result only: what it comes from stands in the file as it was."""
    return _Failure(
        f"in line {fault.line} of the result {fault.message}",
        f"{fault.hint}; then run migrate again",
        is_our_bug=False,
        code=fault.code,
        line=_line_before(change, fault.line),
    )


def _line_before(change: Change, line: int) -> int:
    """The line of a file from which a line of its new content comes, or the nearest before it."""
    from difflib import SequenceMatcher  # hardly ever needed

    olds, news = change.old.splitlines(), change.new.splitlines()
    for _, first, end, new_first, new_end in SequenceMatcher(None, olds, news, autojunk=False).get_opcodes():
        if new_first < line <= new_end:
            return min(first + line - new_first, max(end, 1))
    return 1


def _loops(conversion: Conversion) -> Iterator[Finding]:
    return (finding for finding in conversion.outcome.findings if finding.kind is Kind.LOOP)


def _drop(changes: dict[str, Change], broken: dict[str, _Failure], conversion: Conversion) -> None:
    """Take out what failed, and the files that stand or fall with it."""
    for path in [path for path, failure in broken.items() if not failure.with_it]:
        paths = group(path, conversion.outcome.summaries)
        with_it = tuple(other for other in conversion.touched if other in paths and other not in broken)
        broken[path] = replace(broken[path], with_it=with_it)
        broken.update({other: _Failure("", with_it=(path,)) for other in with_it})
    for path in broken:
        changes.pop(path, None)


def _failure(error: Exception) -> _Failure:
    if isinstance(error, MigrateError):
        is_our_bug = not isinstance(error, EditError) or error.is_our_bug
        code = error.code if isinstance(error, EditError) else NOT_EDITABLE
        # only what could not be edited stands in the file: the others' lines are those of the result, which is dropped
        line = (error.line or 1) if isinstance(error, EditError) else 1
        return _Failure(error.what, error.way_out, error, is_our_bug, code, line)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _Failure(text, cause=error)


def _told(findings: Sequence[Finding], broken: Mapping[str, _Failure]) -> tuple[Finding, ...]:
    """The findings as they are after edits were dropped, and one more for each file that failed."""
    told = [_as_dropped(finding) if finding.path in broken else finding for finding in findings]
    for path, failure in broken.items():
        if failure.reason:
            stays = "The files stay as they were" if failure.with_it else "The file stays as it was"
            also = f" (with {', '.join(failure.with_it)})" if failure.with_it else ""
            code, whose = (OUR_BUG, "a bug of ours: ") if failure.is_our_bug else (failure.code, "")
            message = f"{whose}{failure.reason.rstrip('.')}. {stays}{also}"
            way_out = failure.way_out or "Please report it with the file; --traceback shows where it happened."
            told.append(Finding(code, path, failure.line, 1, failure.line, message, way_out, Kind.LEFT))
    return tuple(told)


def _as_dropped(finding: Finding) -> Finding:
    return replace(finding, converts=False, hint="") if finding.kind is Kind.LOOP else finding


def _write(report: Report, files: Sequence[SourceFile]) -> Report:
    """Save the changes; if that is not possible, the report says that nothing was converted."""
    from migrate.source.save import Rewrite, save

    real = {file.path: file.real for file in files if file.real}
    try:
        remarks = save([Rewrite(c.path, real[c.path], c.old, c.new) for c in report.changes])
    except MigrateError as error:
        findings = tuple(map(_as_dropped, report.findings))
        return replace(report, findings=findings, problems=(*report.problems, error))
    return replace(report, written=True, remarks=(*report.remarks, *remarks))


@contextmanager
def deep_stack() -> Iterator[None]:
    """Room for the deepest file that `parse` lets through. (Frames of Python functions, not of the C stack.)"""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
