"""Files, or standard input, through the pipeline."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate import pipeline
from migrate.cli import narrowing, reviewing, undo
from migrate.cli.interactive import chosen
from migrate.cli.printing import Format
from migrate.cli.progress import progress
from migrate.configuration import configured, folders_of
from migrate.errors import MigrateError
from migrate.options import Mode
from migrate.report.stream import emit

if TYPE_CHECKING:
    from migrate.cli.asked import Asked
    from migrate.cli.verification import Proof
    from migrate.options import Options
    from migrate.report.model import Report


def convert(asked: Asked) -> int:
    """Convert what was named, or say what would become of it. The exit status.

    Raises:
        UsageError: what is asked for does not go together.
    """
    options = asked.options
    if asked.report:
        reviewing.check(asked.report)
    return _text(asked, options) if asked.is_stdin else _files(asked, options)


def _files(asked: Asked, options: Options) -> int:
    mode, paths = options.mode, asked.paths or ()
    options = configured(options, folders_of(paths))
    shown = progress(quiet=asked.quiet)
    if asked.undo_patch:
        undo.check(asked.undo_patch)
    if asked.update_baseline:
        narrowing.check(options)
    proof = _proof(asked, options) if asked.verify else None

    def accept(report: Report) -> Report:
        shown.wipe()
        if asked.interactive:
            report = chosen(report, asked.printing.style(sys.stdout.isatty()))
        if proof and report.changes:
            report = proof.kept(report)
        if asked.undo_patch and report.changes:
            undo.write(asked.undo_patch, report.changes)
        return report

    try:
        report = pipeline.run(paths, options, progress=shown, accept=accept)
    finally:
        shown.wipe()
    if asked.undo_patch and report.changes and not report.written:
        Path(asked.undo_patch).unlink(missing_ok=True)  # it would be the way back from nothing
    report = narrowing.narrowed(report, options, asked.since, paths, update=asked.update_baseline)
    if proof and asked.report:
        proof.look(report)  # the page has it, too
    report = _reviewed(asked, report, mode, proof)
    if not proof and (mode is not Mode.WRITE or asked.output_format is not Format.TEXT):
        asked.printing.result(report, mode)
    asked.printing.rest(report, mode)
    return proof.status(report) if proof else report.exit_status(mode)


def _proof(asked: Asked, options: Options) -> Proof:
    from migrate.cli.verification import Proof  # hooks do not wait for it

    return Proof(asked, options)


def _reviewed(asked: Asked, report: Report, mode: Mode, proof: Proof | None = None) -> Report:
    """The report, which says where the page for reviewers is, if one was wanted."""
    if not asked.report:
        return report
    found = (proof.found,) if proof and proof.found else ()
    try:
        where = reviewing.write(asked.report, report, mode, found)
    except MigrateError as error:  # what else there is to say is still said
        return replace(report, problems=(*report.problems, error))
    return replace(report, remarks=(*report.remarks, where))


def _text(asked: Asked, options: Options) -> int:
    """Standard input to standard output: the new code, always whole, or what --diff and --check show."""
    content = sys.stdin.buffer.read()
    options = configured(options, folders_of([asked.stdin_filename]))
    report = pipeline.run_text(content, asked.stdin_filename, options)
    report = narrowing.narrowed(report, options, "", (), update=False)
    report = _reviewed(asked, report, options.mode)
    mode = asked.mode or (Mode.WRITE if asked.output_format is Format.TEXT else Mode.PREVIEW)
    if mode is Mode.WRITE:
        emit(report.changes[0].new if report.changes else content, sys.stdout)
    else:
        asked.printing.result(report, mode)
    asked.printing.rest(report, mode)
    return report.exit_status(mode)
