"""`--verify`: the runs, and what is shown of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.cli.printing import Format
from migrate.errors import UsageError
from migrate.options import Mode
from migrate.report import text
from migrate.report.stream import emit
from migrate.source import document
from migrate.verify import export
from migrate.verify.table import table
from migrate.verify.verify import verify
from migrate.verify.wish import wish

if TYPE_CHECKING:
    from migrate.cli.asked import Asked
    from migrate.options import Options
    from migrate.report.model import Report
    from migrate.verify.model import Verification

STEPS, PROCESSES, TIME_LIMIT_S = 20, (1, 2), 300.0
FOUND = document.Kind("verification", "verification.json", export.is_ours)


@dataclass(slots=True)
class Proof:
    """The verification of one run of the tool, made when its changes are known."""

    asked: Asked
    options: Options
    found: Verification | None = None

    def __post_init__(self) -> None:
        processes(self.asked.processes)  # before anything else is done
        if self.asked.verify_json:
            document.check(self.asked.verify_json, FOUND)
        if self.options.notebook_launcher:
            raise UsageError(
                "--verify starts the processes itself, and --notebook-launcher makes the notebook start them",
                "Verify without --notebook-launcher first, then convert with it.",
            )

    def kept(self, report: Report) -> Report:
        """The report with what may be written: all of it, or nothing if a contract is broken. Shows the verdicts."""
        asked = self.asked
        wanted = wish(
            (asked.paths or [""])[0],
            {change.path: change.new for change in report.changes},
            arguments=asked.arguments,
            steps=asked.steps or STEPS,
            processes=processes(asked.processes),
            limit_s=asked.time_limit or TIME_LIMIT_S,
            target=self.options.target,
        )
        self.found = verify(wanted, self._say)
        self._show(self.found)
        every = {*report.touched, *(finding.path for finding in report.findings)}
        return report.unconverted(every) if self.found.failed else report

    def look(self, report: Report) -> None:
        """Verify what nothing was to be written of, once."""
        if self.found is None and self.options.mode is not Mode.WRITE and report.changes:
            self.kept(report)

    def status(self, report: Report) -> int:
        """The exit status, after what is still to be done and said."""
        mode = self.options.mode
        self.look(report)
        if self.found is None:
            emit("migrate: nothing to verify: no file changes\n", sys.stderr)
            return report.exit_status(mode)
        if mode is Mode.WRITE and self.found.failed:
            emit("migrate: nothing was written: a contract is broken\n", sys.stderr)
        if report.has_trouble:
            return report.exit_status(mode)
        return self.found.exit_status or (report.exit_status(mode) if mode is Mode.WRITE else 0)

    def _show(self, found: Verification) -> None:
        style = self.asked.printing.style(sys.stdout.isatty())
        if self.asked.output_format is Format.JSON:
            emit(export.text(found), sys.stdout)
        else:
            emit(table(found, text.width_of(sys.stdout), colour=style.colour), sys.stdout)
        if self.asked.verify_json:
            document.write(self.asked.verify_json, export.text(found).encode(), FOUND)

    def _say(self, line: str) -> None:
        if not self.asked.quiet:
            emit(f"migrate: {line}\n", sys.stderr)


def processes(words: str) -> tuple[int, ...]:
    """The numbers in `1,2`, in order; `PROCESSES` where nothing is given.

    Raises:
        UsageError: something else than numbers of at least 1.
    """
    if not words:
        return PROCESSES
    parts = [word.strip() for word in words.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"--processes {words} is not a list of numbers", "Write it as --processes 1,2.")
    return tuple(sorted({int(part) for part in parts}))
