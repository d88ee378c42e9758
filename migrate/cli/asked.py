"""What a command line asks for, and which of it exclude each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from migrate.cli.printing import Color, Format, Printing
from migrate.codes import codes
from migrate.errors import UsageError
from migrate.options import Hardware, Mode, Options, Target
from migrate.source.patterns import Patterns
from migrate.source.pyproject import ISOLATED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line as it was given; fields and defaults are those of the command's parameters."""

    paths: Sequence[str] | None = None
    write: bool = False
    only_diff: bool = False
    check: bool = False
    target: Target | None = None
    hardware: Hardware | None = None
    select: Sequence[str] | None = None
    ignore: Sequence[str] | None = None
    review: bool = False
    annotate: bool = False
    interactive: bool = False
    undo_patch: str = ""
    notebook_launcher: bool = False
    stdin_filename: str = ""
    exclude: Sequence[str] | None = None
    force_exclude: bool = False
    no_gitignore: bool = False
    since: str = ""
    baseline: str = ""
    update_baseline: bool = False
    config: str = ""
    isolated: bool = False
    jobs: int | None = None
    no_cache: bool = False
    cache_dir: str = ""
    explain: str = ""
    explain_role: str = ""
    rules: bool = False
    quiet: bool = False
    verbose: bool = False
    color: Color = Color.AUTO
    output_format: Format = Format.TEXT
    report: str = ""
    version: bool = False
    show_traceback: bool = False
    verify: bool = False
    steps: int | None = None
    processes: str = ""
    time_limit: float | None = None
    verify_json: str = ""
    arguments: tuple[str, ...] = ()  # of the script

    @property
    def printing(self) -> Printing:
        """How results are shown."""
        return Printing(self.quiet, self.verbose, self.color, self.show_traceback, self.output_format)

    @property
    def mode(self) -> Mode | None:
        """What happens with the result; None where nothing is said of it.

        Raises:
            UsageError: two modes at once.
        """
        given = (
            ("--interactive" if self.interactive else "--write", Mode.WRITE, self.write or self.interactive),
            ("--diff", Mode.DIFF, self.only_diff),
            ("--check", Mode.CHECK, self.check),
        )
        found = {name: mode for name, mode, is_given in given if is_given}
        if len(found) > 1:
            raise UsageError(f"{' and '.join(found)} exclude each other", "Give one of them.")
        return next(iter(found.values()), None)

    @property
    def options(self) -> Options:
        """The settings of a run.

        Raises:
            UsageError: options exclude each other, or name no rule.
        """
        for is_asked, what, way_out in CLASHES:
            if is_asked(self):
                raise UsageError(what, way_out)
        named = self._named
        return Options(
            mode=self.mode or Mode.PREVIEW,
            annotate=self.annotate,
            notebook_launcher=self.notebook_launcher,
            exclude=(Patterns(Path.cwd().resolve(), tuple(self.exclude)),) if self.exclude else (),
            config=ISOLATED if self.isolated else self.config or None,
            jobs=self.jobs or 0,
            cache=not self.no_cache,
            given=frozenset(named),
            **named,
            report=bool(self.report),
        )

    @property
    def _named(self) -> dict[str, Any]:
        """The settings that pyproject.toml may hold as well, as far as they are given here."""
        given: dict[str, Any] = {
            "target": self.target,
            "hardware": self.hardware,
            "select": codes(self.select or ()),
            "ignore": codes(self.ignore or ()),
            "review": self.review,
            "force_exclude": self.force_exclude,
            "baseline": self.baseline,
            "cache_dir": self.cache_dir,
        }
        named = {name: value for name, value in given.items() if value}
        return {**named, "gitignore": False} if self.no_gitignore else named

    @property
    def is_stdin(self) -> bool:
        """Whether standard input is converted, not files.

        Raises:
            UsageError: both, or neither.
        """
        if not self.paths:
            raise UsageError("no path is given", "Say `migrate train.py`, or `migrate .` for this folder.")
        for is_asked, what, way_out in STDIN_CLASHES:
            if is_asked(self):
                raise UsageError(what, way_out)
        return list(self.paths) == [STDIN]


def _has_stdin(asked: Asked) -> bool:
    return STDIN in (asked.paths or ())


Clash: TypeAlias = "tuple[Callable[[Asked], object], str, str]"
#: What does not go together: when, what is said of it, and the way out.
CLASHES: tuple[Clash, ...] = (
    (
        lambda asked: asked.output_format is not Format.TEXT and asked.mode is Mode.DIFF,
        "--diff is a format of its own",
        "Give --check, or neither, with --output-format.",
    ),
    (
        lambda asked: asked.annotate and not asked.review,
        "--annotate says where the edits of --review are",
        "Give --review, too.",
    ),
    (
        lambda asked: (asked.since or asked.baseline or asked.update_baseline) and asked.mode is not Mode.CHECK,
        "--since and --baseline say which findings are new",
        "Give --check, too.",
    ),
    (
        lambda asked: asked.since and asked.update_baseline,
        "a baseline holds all findings, not those --since a revision",
        "Leave --since out.",
    ),
    (
        lambda asked: asked.no_cache and asked.cache_dir,
        "--no-cache and --cache-dir exclude each other",
        "Give one of them.",
    ),
    (
        lambda asked: asked.config and asked.isolated,
        "--config and --isolated exclude each other",
        "Give one of them.",
    ),
    (
        lambda asked: asked.undo_patch and asked.mode is not Mode.WRITE,
        "--undo-patch is the way back from --write",
        "Give --write, too.",
    ),
    (
        lambda asked: asked.interactive and asked.output_format is not Format.TEXT,
        "--interactive shows its questions where --output-format writes",
        "Give one of them.",
    ),
    (
        lambda asked: not asked.verify and (asked.steps or asked.processes or asked.time_limit or asked.verify_json),
        "--steps, --processes, --time-limit and --verify-json say how to verify",
        "Give --verify, too.",
    ),
    (
        lambda asked: asked.verify and asked.mode not in {None, Mode.WRITE},
        "--verify shows verdicts, --diff and --check show something else",
        "Run migrate twice.",
    ),
    (
        lambda asked: asked.verify and asked.output_format not in {Format.TEXT, Format.JSON},
        "verdicts are no findings, and have no place in this format",
        "Give --output-format json, or --verify-json FILE.",
    ),
)
STDIN_CLASHES: tuple[Clash, ...] = (
    (
        lambda asked: _has_stdin(asked) and len(asked.paths or ()) > 1,
        "- (standard input) cannot be mixed with paths",
        "Run migrate twice.",
    ),
    (
        lambda asked: asked.stdin_filename and not _has_stdin(asked),
        "--stdin-filename names standard input, which is not read",
        "Give - as the path.",
    ),
    (
        lambda asked: _has_stdin(asked) and asked.write and asked.output_format is not Format.TEXT,
        "standard output cannot hold both the code and findings",
        "Give --check, not --write.",
    ),
    (
        lambda asked: _has_stdin(asked) and asked.verify,
        "--verify runs a script where it lies, and standard input lies nowhere",
        "Name the file.",
    ),
    (
        lambda asked: _has_stdin(asked) and (asked.interactive or asked.undo_patch),
        "--interactive and --undo-patch are about files, and standard input is none",
        "Name files.",
    ),
    (
        lambda asked: _has_stdin(asked) and (asked.since or asked.update_baseline),
        "--since and --update-baseline are about files, and standard input is none",
        "Name files.",
    ),
)
