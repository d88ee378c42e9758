"""The document. Style and script are in it, and its policy forbids everything else, the network first of all."""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.report.html import findings as entries
from migrate.report.html.files import Shown, file
from migrate.report.html.markup import EMPTY, Markup, join, sentence, tag, text
from migrate.report.html.overview import numbers, programs, what
from migrate.report.html.script import SCRIPT
from migrate.report.html.style import style
from migrate.report.html.verification import verification

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.report.formats.about import About
    from migrate.report.html.verification import Verification
    from migrate.report.map import Place
    from migrate.report.model import Finding, Report

MARK = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="migrate '
OPEN_FILES = 40  # files of a page that are open at first


def page(report: Report, about: About, verifications: Sequence[Verification] = ()) -> str:
    """The whole document, with a line feed at its end; it holds no character that UTF-8 has not.

    `verifications`: what `--verify` found, where it ran.
    """
    return _Page(report, about, tuple(verifications)).written()


def is_ours(content: bytes) -> bool:
    """Whether a document is a page that was made here."""
    return content.startswith(MARK.encode())


@dataclass(frozen=True)
class _Page:
    """A page being written."""

    report: Report
    about: About
    verifications: tuple[Verification, ...]

    def written(self) -> str:
        sheet, script = Markup(style()), Markup(SCRIPT)
        head = (
            tag("meta", http_equiv="Content-Security-Policy", content=_policy(sheet, script)),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("title", text(f"migrate: {self._title}")),
            tag("style", sheet),
            tag("script", script),
        )
        body = tag("body", *self._top(), tag("main", *self._main(), id="content"))
        return f'{MARK}{text(self.about.version)}">{join(head)}</head>{body}</html>\n'

    @property
    def _title(self) -> str:
        names = [summary.path for summary in self.report.summaries] or list(self.report.sources)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"{names[0]}{more}" if names else "no files"

    # --- sections ---------------------------------------------------------------------------------------------------

    @cached_property
    def _sections(self) -> list[tuple[str, str, Markup]]:
        """Id, title and content, in order; only those that have something to say."""
        report, rules = self.report, self.about.rules
        shown = [file(each) for each in self._files]
        codes = [*(f.code for f in self._findings), *(edit.code for c in report.changes for edit in c.edits)]
        left = entries.findings(self._findings, report, rules, self._line)
        found = [
            ("problems", "Errors", entries.problems(report.problems) if report.problems else EMPTY),
            ("programs", "Programs", programs(report, self._at, self._anchors)),
            ("verification", "Verification", join(map(verification, self.verifications))),
            ("left", "What is left", left),
            ("changes", "Changes" if report.changes else "Files", join(shown)),
            ("rules", "What the rules do", entries.glossary(codes, rules)),
            (
                "remarks",
                "Remarks",
                tag("ul", *(tag("li", text(r)) for r in report.remarks)) if report.remarks else EMPTY,
            ),
        ]
        return [each for each in found if each[2]]

    def _top(self) -> Iterator[Markup]:
        jumps = [(name, title) for name, title, _ in self._sections]
        for name, title in jumps:
            if name in ("programs", "left", "changes"):
                yield tag("a", text(f"Skip to {title[:1].lower()}{title[1:]}"), href=f"#{name}", class_="skip")
        links = (tag("a", text(title), href=f"#{name}") for name, title in jumps)
        switch = tag("button", text("Dark theme"), id="theme", type="button", hidden=True)
        yield tag("div", tag("h1", text("migrate")), tag("nav", *links, aria_label="Sections"), switch, class_="top")

    def _main(self) -> Iterator[Markup]:
        yield tag("p", tag("b", sentence(what(self.report, self.about.mode))), class_="lead")
        yield numbers(self.report, self.about.mode)
        keys = (("j", "next change or finding"), ("k", "the one before"), ("e", "unfold all code"), ("t", "theme"))
        yield tag(
            "p", join((join((tag("kbd", text(key)), text(f" {does}"))) for key, does in keys), " · "), class_="keys"
        )
        for name, title, content in self._sections:
            yield tag("section", tag("h2", text(title), id=f"{name}-title"), content, id=name, tabindex=-1)

    # --- links ------------------------------------------------------------------------------------------------------

    @cached_property
    def _findings(self) -> list[Finding]:
        return entries.listed(self.report)

    @cached_property
    def _anchors(self) -> dict[Finding, str]:
        return {finding: entries.anchor(number) for number, finding in enumerate(self._findings)}

    @cached_property
    def _pointed(self) -> dict[str, set[int]]:
        """The lines that something leads to, by path."""
        found: dict[str, set[int]] = defaultdict(set)
        for finding in self._findings:
            found[finding.path].add(finding.line)
        maps = [summary.map for summary in self.report.summaries if summary.map is not None]
        for drawn in maps:
            places = [thing.place for thing in drawn.things] + [frame.place for frame in drawn.frames]
            for place in (*places, *(place for place, _ in drawn.rounds)):
                found[place.path].add(place.line)
        return found

    @cached_property
    def _files(self) -> list[Shown]:
        """The files that change, then those that something leads into."""
        changes = {change.path: change for change in self.report.changes}
        paths = [*changes, *sorted(path for path in self._pointed if path not in changes)]
        made: list[Shown] = []
        for path in paths:
            change, source = changes.get(path), self.report.sources.get(path)
            old = change.old if change is not None else source.content if source is not None else None
            if old is None:
                continue
            new = None if change is None else change.new
            pointed = frozenset(self._pointed.get(path, ()))
            made.append(Shown(len(made), path, old, new, change, pointed, self._remarks(path), self.about.rules))
        return made

    def _remarks(self, path: str) -> dict[int, list[Markup]]:
        found: dict[int, list[Markup]] = defaultdict(list)
        for number, finding in enumerate(self._findings):
            if finding.path == path:
                found[finding.line].append(entries.remark(number, finding))
        return found

    @cached_property
    def _by_path(self) -> dict[str, Shown]:
        return {shown.path: shown for shown in self._files}

    def _line(self, path: str, line: int) -> str:
        """The address of a line: of the file where the line is not there, of the list where the file is not."""
        shown = self._by_path.get(path)
        if shown is None:
            return "#changes" if self._files else "#content"
        return f"#{shown.line(line) if 1 <= line <= len(shown.lines.texts) else shown.anchor}"

    def _at(self, place: Place) -> str:
        return self._line(place.path, place.line)


def _policy(sheet: str, script: str) -> str:
    """Nothing but the style and the script of the page itself; nothing from anywhere, nothing to anywhere."""
    allowed = f"script-src '{_hash(script)}'; style-src '{_hash(sheet)}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
