"""What a command line asks for, and which of it exclude each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.cli import catalogue
from migrate.cli.printing import Color, Format, Printing
from migrate.errors import UsageError
from migrate.options import Mode, Options, Target, codes
from migrate.source.patterns import Patterns
from migrate.source.pyproject import ISOLATED

if TYPE_CHECKING:
    from collections.abc import Sequence

STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line as it was given; the fields are the parameters of the command."""

    paths: Sequence[str] | None
    write: bool
    only_diff: bool
    check: bool
    target: Target | None
    select: Sequence[str] | None
    ignore: Sequence[str] | None
    review: bool
    annotate: bool
    stdin_filename: str
    exclude: Sequence[str] | None
    force_exclude: bool
    no_gitignore: bool
    since: str
    baseline: str
    update_baseline: bool
    config: str
    isolated: bool
    explain: str
    explain_role: str
    rules: bool
    quiet: bool
    verbose: bool
    color: Color
    output_format: Format
    version: bool
    show_traceback: bool

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
        given = ((Mode.WRITE, self.write), (Mode.DIFF, self.only_diff), (Mode.CHECK, self.check))
        modes = [mode for mode, is_given in given if is_given]
        if len(modes) > 1:
            names = " and ".join(f"--{mode.value}" for mode in modes)
            raise UsageError(f"{names} exclude each other", "Give one of them.")
        return modes[0] if modes else None

    @property
    def options(self) -> Options:
        """The settings of a run.

        Raises:
            UsageError: options exclude each other, or name no rule.
        """
        if self.output_format is not Format.TEXT and self.mode is Mode.DIFF:
            raise UsageError("--diff is a format of its own", "Give --check, or neither, with --output-format.")
        if self.annotate and not self.review:
            raise UsageError("--annotate says where the edits of --review are", "Give --review, too.")
        if (self.since or self.baseline or self.update_baseline) and self.mode is not Mode.CHECK:
            raise UsageError("--since and --baseline say which findings are new", "Give --check, too.")
        if self.since and self.update_baseline:
            raise UsageError("a baseline holds all findings, not those --since a revision", "Leave --since out.")
        if self.config and self.isolated:
            raise UsageError("--config and --isolated exclude each other", "Give one of them.")
        named = self._named
        return Options(
            mode=self.mode or Mode.PREVIEW,
            annotate=self.annotate,
            exclude=(Patterns(Path.cwd().resolve(), tuple(self.exclude)),) if self.exclude else (),
            config=ISOLATED if self.isolated else self.config or None,
            given=frozenset(named),
            **named,
        )

    @property
    def _named(self) -> dict[str, Any]:
        """The settings that pyproject.toml may hold as well, as far as they are given here."""
        code_of = {rule.name: rule.code for rule in catalogue.every()} if self.select or self.ignore else {}
        given: dict[str, Any] = {
            "target": self.target,
            "select": codes(self.select or (), code_of),
            "ignore": codes(self.ignore or (), code_of),
            "review": self.review,
            "force_exclude": self.force_exclude,
            "baseline": self.baseline,
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
        if STDIN in self.paths and len(self.paths) > 1:
            raise UsageError("- (standard input) cannot be mixed with paths", "Run migrate twice.")
        if self.stdin_filename and list(self.paths) != [STDIN]:
            raise UsageError("--stdin-filename names standard input, which is not read", "Give - as the path.")
        if STDIN in self.paths and self.write and self.output_format is not Format.TEXT:
            raise UsageError("standard output cannot hold both the code and findings", "Give --check, not --write.")
        return list(self.paths) == [STDIN]
