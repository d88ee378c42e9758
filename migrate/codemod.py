"""The conversion as a command of libcst's own tool.

    python -m libcst.tool codemod --no-format -x migrate.codemod.ConvertCommand train.py

It makes what `migrate --write` makes of a program in one file: each file is converted by itself, and what stays is said
as a warning. A program over several files needs `migrate`, which sees all of them; here it stays as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext

from migrate import pipeline
from migrate.options import Options, Target
from migrate.report.model import Kind

if TYPE_CHECKING:
    import argparse

TOLD = (Kind.LOOP, Kind.LEFT, Kind.REVIEW, Kind.FAULT)


class ConvertCommand(CodemodCommand):
    """Converts the training loops of a file, all of its programs that can be converted whole."""

    DESCRIPTION = "Convert PyTorch training loops to run on any device and any number of processes."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """What `migrate` calls the same."""
        arg_parser.add_argument(
            "--target",
            choices=[target.value for target in Target],
            help="the package that converted scripts import; what pyproject.toml says, else runtime",
        )
        arg_parser.add_argument(
            "--review", action="store_true", help="also make edits that rest on what is only likely"
        )

    def __init__(self, context: CodemodContext, target: str | None = None, *, review: bool = False) -> None:
        super().__init__(context)
        given: dict[str, Any] = {"target": Target(target) if target else None, "review": review}
        named = {name: value for name, value in given.items() if value}
        self._options = Options(given=frozenset(named), **named)

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The converted module; the same one where nothing is converted.

        Raises:
            MigrateError: the file cannot be parsed by this interpreter, or the settings are wrong.
        """
        report = pipeline.run_text(tree.bytes, self.context.filename or "", self._options)
        if report.problems:
            raise report.problems[0]
        for finding in report.findings:
            if finding.kind in TOLD and not finding.converts:
                hint = f" {finding.hint}" if finding.hint else ""
                self.warn(f"{finding.line}:{finding.column} {finding.code} {finding.message}{hint}")
        return cst.parse_module(report.changes[0].new) if report.changes else tree
