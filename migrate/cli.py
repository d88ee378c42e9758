"""The command line: parse, call the pipeline, print, exit. No decisions about code are made here."""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from migrate import __version__, pipeline
from migrate.errors import MigrateError, UsageError
from migrate.options import Mode, Options, Target, codes, question
from migrate.report import diff, text
from migrate.report.model import OUR_BUG, Kind, Report
from migrate.report.text import Style, emit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EXAMPLES = """\b
Examples:
  migrate train.py                       show the diff, and what was understood
  migrate train.py --write               convert the file
  migrate src/ --check                   list the training loops that are still plain PyTorch
  migrate src/ --diff | git apply        take the changes as a patch
  migrate - < train.py > converted.py    from standard input to standard output
  migrate train.py --target accelerate   convert to Hugging Face Accelerate
  migrate train.py --review              also what rests on annotations that nothing in sight confirms
  migrate --explain MIG105               what a rule does, and what it leaves alone
  migrate --explain-role train.py:31:model   what `model` on line 31 is, and why migrate thinks so

\b
Exit status:
  0  nothing to do, or all done
  1  loops are not converted, files would change, or (with --write) something is left to you or to be reviewed
  2  wrong usage, unreadable or unparsable input, or a bug of ours; nothing is half written
"""
PROGRESS_FROM = 200  # files: a shorter run is over before a person wonders
INTERRUPTED = 130  # 128 + SIGINT, as shells have it

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


class Color(str, Enum):
    """When to use colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Documented(Protocol):
    """What the command line needs to know of a rule."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def documentation(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Printing:
    """How results are shown."""

    quiet: bool
    verbose: bool
    color: Color
    traceback: bool

    def style(self, is_terminal: bool) -> Style:
        """For a stream: colours only on a terminal, unless they are asked for."""
        wanted = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return Style(self.verbose, self.color is Color.ALWAYS or (self.color is Color.AUTO and wanted))


Paths = Annotated[list[str] | None, typer.Argument(metavar="PATHS", help="Scripts and folders; - is standard input.")]
Write = Annotated[bool, typer.Option("--write", "-w", help="Convert the files: all of them, or none if one fails.")]
Diff = Annotated[bool, typer.Option("--diff", help="Show only the diff; `git apply` and `patch -p1` take it.")]
Check = Annotated[bool, typer.Option("--check", help="Show only findings; for hooks and continuous integration.")]
To = Annotated[Target, typer.Option("--target", help="The package that converted scripts import.")]
Select = Annotated[
    list[str] | None, typer.Option("--select", metavar="CODES", help="Only these: MIG105,prepare or MIG1.")
]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", metavar="CODES", help="All rules but these.")]
StdinName = Annotated[str, typer.Option("--stdin-filename", metavar="PATH", help="What standard input is called.")]
Review = Annotated[
    bool, typer.Option("--review", help="Also make edits that rest on what is only likely; the report lists them.")
]
Annotate = Annotated[bool, typer.Option("--annotate", help="With --review: put a comment at each of these edits.")]
Explain = Annotated[str, typer.Option("--explain", metavar="CODE", help="Explain a rule, by code or name.")]
ExplainRole = Annotated[
    str,
    typer.Option("--explain-role", metavar="FILE:LINE:NAME", help="Explain what a name is; PATHS are read as well."),
]
Rules = Annotated[bool, typer.Option("--rules", help="List the rules.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also list every edit.")]
Coloured = Annotated[Color, typer.Option("--color", help="Use colours; auto: on a terminal, unless NO_COLOR is set.")]
Version = Annotated[bool, typer.Option("--version", help="Show the version.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where in migrate an error came from.")]


def main() -> None:
    """The console script."""
    app(prog_name="migrate")


@app.command(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
def migrate(
    paths: Paths = None,
    write: Write = False,
    only_diff: Diff = False,
    check: Check = False,
    target: To = Target.RUNTIME,
    select: Select = None,
    ignore: Ignore = None,
    review: Review = False,
    annotate: Annotate = False,
    stdin_filename: StdinName = "",
    explain: Explain = "",
    explain_role: ExplainRole = "",
    rules: Rules = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    color: Coloured = Color.AUTO,
    version: Version = False,
    show_traceback: Traceback = False,
) -> None:
    """Convert PyTorch training scripts to run on any device and any number of processes.

    Without options, shows what would change and changes nothing. Only the paths named are ever written; the project's
    modules that they import are read.
    """
    printing = Printing(quiet, verbose, color, show_traceback)

    def work() -> int:
        if version:
            emit(f"migrate {__version__}\n", sys.stdout)
        elif rules:
            emit(_table(catalogue()), sys.stdout)
        elif explain:
            emit(_explained(explain, catalogue()), sys.stdout)
        elif explain_role:
            emit(pipeline.explain_role(question(explain_role), paths or []), sys.stdout)
        else:
            code_of = {rule.name: rule.code for rule in catalogue()} if select or ignore else {}
            mode = _mode(write=write, diff=only_diff, check=check)
            options = Options(
                mode=mode or Mode.PREVIEW,
                target=target,
                select=codes(select or (), code_of),
                ignore=codes(ignore or (), code_of),
                review=review,
                annotate=_annotates(annotate, review),
            )
            if _is_stdin(paths or [], stdin_filename):
                return _filter(stdin_filename, options, mode in {None, Mode.WRITE}, printing)
            return _convert(paths or [], options, printing)
        return 0

    raise typer.Exit(_guarded(work, printing))


def catalogue() -> Sequence[Documented]:
    """Every rule, in order, and every reason for which something is left."""
    from migrate.rules import REASONS, RULES  # not needed for --help and --version

    return sorted((*RULES, *REASONS), key=lambda each: each.code)


def _guarded(work: Callable[[], int], printing: Printing) -> int:
    """The exit status; errors become one line."""
    try:
        return work()
    except KeyboardInterrupt:
        emit("migrate: interrupted\n", sys.stderr)
        return INTERRUPTED
    except MigrateError as error:
        emit(f"migrate: {error}\n", sys.stderr)
        cause: BaseException = error
    except Exception as error:  # noqa: BLE001 (a person should see one line, not our stack)
        what = f"{type(error).__name__}: {error}"
        emit(f"migrate: a bug of ours: {what}. Please report it; --traceback shows where it happened.\n", sys.stderr)
        cause = error
    if printing.traceback:
        _trace([cause])
    return 2


def _trace(causes: Sequence[BaseException]) -> None:
    for cause in causes:
        emit("".join(traceback.format_exception(cause)), sys.stderr)


def _mode(*, write: bool, diff: bool, check: bool) -> Mode | None:
    asked = [mode for mode, is_asked in ((Mode.WRITE, write), (Mode.DIFF, diff), (Mode.CHECK, check)) if is_asked]
    if len(asked) > 1:
        names = " and ".join(f"--{mode.value}" for mode in asked)
        raise UsageError(f"{names} exclude each other", "Give one of them.")
    return asked[0] if asked else None


def _annotates(annotate: bool, review: bool) -> bool:
    if annotate and not review:
        raise UsageError("--annotate says where the edits of --review are", "Give --review, too.")
    return annotate


def _is_stdin(paths: Sequence[str], stdin_filename: str) -> bool:
    if not paths:
        raise UsageError("no path is given", "Say `migrate train.py`, or `migrate .` for this folder.")
    if "-" in paths and len(paths) > 1:
        raise UsageError("- (standard input) cannot be mixed with paths", "Run migrate twice.")
    if stdin_filename and paths != ["-"]:
        raise UsageError("--stdin-filename names standard input, which is not read", "Give - as the path.")
    return paths == ["-"]


def _convert(paths: Sequence[str], options: Options, printing: Printing) -> int:
    report = pipeline.run(paths, options, progress=_progress(printing))
    if report.files > PROGRESS_FROM:
        _progress(printing)(0)
    style = printing.style(sys.stdout.isatty())
    if options.mode is Mode.CHECK:
        emit(text.findings(report, _kinds(options.mode, style), style), sys.stdout)
    elif options.mode is not Mode.WRITE:
        _print_diff(report, style)
    _print_report(report, options.mode, printing)
    return report.exit_status(options.mode)


def _filter(name: str, options: Options, is_code: bool, printing: Printing) -> int:
    """Standard input to standard output: the new code, always whole, or what --diff and --check show."""
    content = sys.stdin.buffer.read()
    report = pipeline.run_text(content, name, options)
    style = printing.style(sys.stdout.isatty())
    mode = Mode.WRITE if is_code else options.mode
    if is_code:
        emit(report.changes[0].new if report.changes else content, sys.stdout)
    elif mode is Mode.CHECK:
        emit(text.findings(report, _kinds(mode, style), style), sys.stdout)
    else:
        _print_diff(report, style)
    _print_report(report, mode, printing)
    return report.exit_status(mode)


def _print_diff(report: Report, style: Style) -> None:
    patch = diff.diff(report.changes)
    emit(diff.coloured(patch) if style.colour else patch, sys.stdout)


def _kinds(mode: Mode, style: Style) -> frozenset[Kind]:
    """Which findings a mode shows."""
    shown = {Kind.LOOP, Kind.LEFT, Kind.FAULT, Kind.REVIEW}
    shown |= set() if mode is Mode.CHECK else {Kind.NOTE}
    return frozenset({*shown, Kind.NOTE, Kind.EDIT} if style.verbose else shown)


def _print_report(report: Report, mode: Mode, printing: Printing) -> None:
    """Everything that is not the result, on standard error."""
    style = printing.style(sys.stderr.isatty())
    parts: list[str] = []
    if mode in {Mode.PREVIEW, Mode.WRITE} and not printing.quiet:
        told = mode is Mode.PREVIEW or style.verbose
        parts.append(text.summaries(report, text.width_of(sys.stderr)) if told else "")
        shown = report.remaining() if mode is Mode.WRITE and not style.verbose else report
        parts.append(text.findings(shown, _kinds(mode, style), style))
        parts.append(text.lost_comments(report.changes))
    elif mode is not Mode.CHECK:
        parts.append(text.findings(report.only(OUR_BUG), Kind, style))
    if not printing.quiet:
        parts.append("".join(f"{remark}\n" for remark in report.remarks))
    parts.append(text.problems(report))
    if not printing.quiet:
        parts.append(text.summary(report, mode))
    emit("\n".join(part for part in parts if part), sys.stderr)
    if printing.traceback:
        _trace([*report.problems, *report.causes])


def _progress(printing: Printing) -> Callable[[int], None]:
    """Says how many files were read, on a terminal; 0 wipes the line."""
    if printing.quiet or not sys.stderr.isatty():
        return lambda _: None

    def show(count: int) -> None:
        if count == 0:
            emit("\r\x1b[K", sys.stderr)
        elif count > PROGRESS_FROM and count % 50 == 1:
            emit(f"\rmigrate: {count:,} files read", sys.stderr)

    return show


def _table(rules: Sequence[Documented]) -> str:
    width = max((len(rule.name) for rule in rules), default=0)
    return "".join(
        f"{rule.code}  {rule.name:{width}}  {rule.summary}\n" for rule in sorted(rules, key=lambda rule: rule.code)
    )


def _explained(word: str, rules: Sequence[Documented]) -> str:
    wanted = codes([word], {rule.name: rule.code for rule in rules})
    matching = [rule for rule in rules if rule.code.startswith(wanted)]
    return "\n".join(f"{rule.code} {rule.documentation}\n" for rule in matching)
