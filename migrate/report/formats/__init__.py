"""The report as documents for other programs, one module each; `FORMATS` has them by the names of `--output-format`.

docs/findings.md says what is in each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.report.formats import document, github, gitlab, rdjson, sarif
from migrate.report.formats.about import About, Documented

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from migrate.report.model import Report

FORMATS: Mapping[str, Callable[[Report, About], str]] = {
    "json": document.rendered,
    "sarif": sarif.rendered,
    "github": github.rendered,
    "gitlab": gitlab.rendered,
    "rdjson": rdjson.rendered,
}

__all__ = ["FORMATS", "About", "Documented"]
