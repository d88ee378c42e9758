"""What must hold of every run over whatever program: a table of laws, each of which says how a trial breaks it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.options import Mode, Options
from migrate.pipeline import convert, deep_stack
from migrate.report.model import OUR_BUG, Kind, Report
from migrate.source.project import Project, SourceFile, source_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from programs import Program

OPTIONS = Options()
CHECK = Options(mode=Mode.CHECK)


@dataclass(frozen=True)
class Trial:
    """One input, and what became of it."""

    program: Program
    project: Project
    report: Report
    raised: str = ""

    @property
    def texts(self) -> Iterator[tuple[bytes, bytes, tuple[str, ...]]]:
        """Python before and after, and the comments that are told to be lost, of each file that changes."""
        for change in self.report.changes:
            if change.path.endswith(".py"):
                yield change.old, change.new, change.lost_comments


def tried(program: Program, folder: Path | None = None) -> Trial:
    """The trial of an input; files that belong together are written to the folder, where they find each other."""
    files = []
    try:
        for name, content in program.files.items():
            real = None
            if folder is not None and len(program.files) > 1:
                real = (folder / name).resolve()
                real.write_bytes(content)
            files.append(source_file(name if real is None else str(real), content, real=real))
    except Exception as error:  # noqa: BLE001 (a notebook that cannot be read is an error that is meant)
        project = Project([])
        is_ours = not hasattr(error, "way_out")
        return Trial(program, project, Report(), traceback.format_exc() if is_ours else "")
    project = Project(files)
    try:
        return Trial(program, project, convert(project, OPTIONS))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Trial(program, project, Report(), traceback.format_exc())


def no_crash(trial: Trial) -> Iterator[str]:
    if trial.raised:
        yield trial.raised
    for cause in trial.report.causes:
        if getattr(cause, "is_our_bug", True):  # libcst cannot keep every form feed, and the report says so
            yield "".join(traceback.format_exception(cause)[-6:])
    for finding in trial.report.findings:
        if finding.code == OUR_BUG:
            yield f"{finding.place} {finding.message}"


def parses(trial: Trial) -> Iterator[str]:
    for old, new, _ in trial.texts:
        if (wrong := _not_compiled(new)) and not _not_compiled(old):
            yield wrong


def _not_compiled(content: bytes) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with deep_stack():
                compile(content, "program", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return f"line {getattr(error, 'lineno', 0)}: {error}"
    return ""


def is_settled(trial: Trial) -> Iterator[str]:
    """A second run over what came out changes nothing."""
    if not trial.report.changes:
        return
    new = {change.path: change.new for change in trial.report.changes}
    files = [
        source_file(
            file.path, new.get(file.path, file.notebook.content if file.notebook else file.content), real=file.real
        )
        for file in trial.project.named
    ]
    for file in files:
        if file.real is not None:
            file.real.write_bytes(new.get(file.path, file.content))
    again = convert(Project(files), CHECK)
    if again.touched or again.changes:
        yield f"a second run changes {', '.join(again.touched)}"
    yield from (f"a second run says {f.place} {f.message}" for f in again.findings if f.code == OUR_BUG)


def comments_are_kept(trial: Trial) -> Iterator[str]:
    for old, new, lost in trial.texts:
        missing = _comments(old) - _comments(new)
        told = Counter(line.partition(": ")[2] for line in lost)
        if missing != told:
            yield f"lost: {dict(missing - told)}; told though it is there: {dict(told - missing)}"


def _comments(content: bytes) -> Counter[str]:
    tokens = tokenize.tokenize(io.BytesIO(content).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


def untouched_statements_are_identical(trial: Trial) -> Iterator[str]:
    """A simple statement that means the same is written the same, and one on lines without an edit is still there."""
    for change in trial.report.changes:
        if not change.path.endswith(".py"):
            continue
        was, now = _written(change.old), _written(change.new)
        for meaning, texts in now.items():
            if meaning in was and not set(texts) <= set(was[meaning]):
                yield f"written anew though nothing in it changed: {meaning}"
        touched = {line for edit in change.edits for line in range(edit.line, edit.end_line + 1)}
        for meaning, texts in was.items():
            kept = sum(not touched & set(range(first, last + 1)) for first, last in texts.values())
            if kept and meaning not in now:
                yield f"gone though no edit is there: {meaning}"


def _written(content: bytes) -> dict[str, dict[bytes, tuple[int, int]]]:
    """How each simple statement is written, by its meaning, with the lines of one that is written so."""
    encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
    text = content.decode(encoding)
    lines = [line.encode() for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)]
    found: dict[str, dict[bytes, tuple[int, int]]] = {}
    with warnings.catch_warnings(), deep_stack():
        warnings.simplefilter("ignore")
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.stmt) and not hasattr(node, "body") and not hasattr(node, "cases"):
                last = node.end_lineno or node.lineno
                rows = lines[node.lineno - 1 : last]
                rows[-1] = rows[-1][: node.end_col_offset]
                rows[0] = rows[0][node.col_offset :]
                written = b"\n".join(row.strip() for row in rows)  # it may stand in another depth
                found.setdefault(ast.unparse(node), {})[written] = (node.lineno, last)
    return found


def bytes_stay(trial: Trial) -> Iterator[str]:
    """The byte order mark and the kinds of newlines stay; a file that changes is one that was given."""
    for change in trial.report.changes:
        if change.old.startswith(b"\xef\xbb\xbf") != change.new.startswith(b"\xef\xbb\xbf"):
            yield "the byte order mark"
        ends = [set(re.findall(rb"\r\n|\r|\n", content)) for content in (change.old, change.new)]
        if change.path.endswith(".py") and ends[0] and not ends[1] <= ends[0]:
            yield f"newlines {ends[0]} became {ends[1]}"
        if change.old not in trial.program.files.values():
            yield f"{change.path} is not what was given"


def what_is_said_has_a_place_and_a_way_out(trial: Trial) -> Iterator[str]:
    files: dict[str, SourceFile] = {file.path: file for file in trial.project.named}
    for finding in trial.report.findings:
        if finding.path in files and finding.cell is None and files[finding.path].error is None:
            if not 1 <= finding.line <= len(files[finding.path].lines):
                yield f"there is no line {finding.line}: {finding.message}"
        if finding.kind is Kind.LEFT and not finding.hint:
            yield f"no way out: {finding.message}"


LAWS: dict[str, Callable[[Trial], Iterator[str]]] = {
    "no crash, no bug of ours": no_crash,
    "what comes out compiles": parses,
    "a second run changes nothing": is_settled,
    "comments are kept or told": comments_are_kept,
    "untouched statements are identical": untouched_statements_are_identical,
    "newlines and byte order marks stay": bytes_stay,
    "what is said has a place and a way out": what_is_said_has_a_place_and_a_way_out,
}


def broken(trial: Trial) -> list[tuple[str, str]]:
    """(law, how it is broken) of one trial."""
    found = []
    for law, check in LAWS.items():
        try:
            found += [(law, how) for how in check(trial)]
        except Exception:  # noqa: BLE001 (a law that cannot be asked is broken)
            found.append((law, traceback.format_exc()))
    return found
