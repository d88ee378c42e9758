"""`--report`: the page for reviewers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from migrate import __version__
from migrate.cli import catalogue
from migrate.errors import UsageError
from migrate.source import document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.options import Mode
    from migrate.report.html.verification import Verification
    from migrate.report.model import Report


def check(path: str) -> None:
    """See before anything is done that the page can be written.

    Raises:
        UsageError: it would take the place of something else, or has none.
    """
    if path == "-":
        raise UsageError("the report is a file", "Name one: --report report.html.")
    document.check(path, _page())


def write(path: str, report: Report, mode: Mode, verifications: Sequence[Verification] = ()) -> str:
    """Write the page, with what a verification found where there was one, and say where it is.

    Raises:
        MigrateError: it cannot be written. What was converted is converted.
    """
    from migrate.report.formats import About
    from migrate.report.html import page

    inputs = [file.real for file in report.sources.values() if file.real is not None]
    document.check(path, _page(), inputs)
    about = About(__version__, mode, {rule.code: rule for rule in catalogue.every()})
    document.write(path, page(report, about, verifications).encode(), _page())
    return f"The report is in {os.path.abspath(path)}"


def _page() -> document.Kind:
    from migrate.report.html import is_ours  # a run without a report does not wait for it

    return document.Kind("report", "report.html", is_ours)
