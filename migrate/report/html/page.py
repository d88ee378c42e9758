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
Text = tuple[str, int | None]  # path of a file, and the cell of a notebook


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
        left = entries.findings(self._findings, report, rules, self._at)
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
        yield numbers(self.report)
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
    def _pointed(self) -> dict[Text, set[int]]:
        """The lines that something leads to, by text."""
        found: dict[Text, set[int]] = defaultdict(set)
        for finding in self._findings:
            found[finding.path, finding.cell].add(finding.line)
        maps = [summary.map for summary in self.report.summaries if summary.map is not None]
        for drawn in maps:
            places = [thing.place for thing in drawn.things] + [frame.place for frame in drawn.frames]
            for place in (*places, *(place for place, _ in drawn.rounds)):
                found[place.path, place.cell].add(place.line)
        return found

    @cached_property
    def _files(self) -> list[Shown]:
        """The texts that change, then those that something leads into."""
        changes = {change.path: change for change in self.report.changes}
        cells = {(change.path, cell.number): cell for change in self.report.changes for cell in change.cells}
        whole = {(path, None) for path, change in changes.items() if not change.cells}
        keys: set[Text] = {*whole, *cells, *self._pointed}
        order = {path: number for number, path in enumerate((*changes, *sorted({path for path, _ in keys})))}
        made: list[Shown] = []
        for path, cell in sorted(keys, key=lambda key: (key not in whole | cells.keys(), order[key[0]], key[1] or 0)):
            change, new = changes.get(path), None
            if cell is not None and (path, cell) in cells:
                old, new = (f"{text}\n".encode() for text in (cells[path, cell].old, cells[path, cell].new))
            elif cell is None and change is not None and not change.cells:
                old, new = change.old, change.new
            elif (found := self._source(path, cell)) is not None:
                old = found
            else:
                continue
            pointed = frozenset(self._pointed.get((path, cell), ()))
            own = change if new is not None else None
            made.append(
                Shown(len(made), path, cell, old, new, own, pointed, self._remarks(path, cell), self.about.rules)
            )
        return made

    def _source(self, path: str, cell: int | None) -> bytes | None:
        """A text that stays as it is; None where it is not known."""
        source = self.report.sources.get(path)
        if source is None or (source.notebook is None) != (cell is None):
            return None
        if source.notebook is None or cell is None:
            return source.content
        return "".join(f"{line}\n" for line in source.notebook.lines(cell)).encode()

    def _remarks(self, path: str, cell: int | None) -> dict[int, list[Markup]]:
        found: dict[int, list[Markup]] = defaultdict(list)
        for number, finding in enumerate(self._findings):
            if (finding.path, finding.cell) == (path, cell):
                found[finding.line].append(entries.remark(number, finding))
        return found

    @cached_property
    def _by_text(self) -> dict[Text, Shown]:
        return {(shown.path, shown.cell): shown for shown in self._files}

    def _at(self, place: Finding | Place) -> str:
        """The address of a line: of the file where the line is not there, of the list where the file is not."""
        shown = self._by_text.get((place.path, place.cell))
        if shown is None:
            return "#changes" if self._files else "#content"
        return f"#{shown.line(place.line) if 1 <= place.line <= len(shown.lines.texts) else shown.anchor}"


def _policy(sheet: str, script: str) -> str:
    """Nothing but the style and the script of the page itself; nothing from anywhere, nothing to anywhere."""
    allowed = f"script-src '{_hash(script)}'; style-src '{_hash(sheet)}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
