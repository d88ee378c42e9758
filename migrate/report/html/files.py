"""Files side by side: the old text on the left, the new one on the right, reasons above what changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.report.counted import counted
from migrate.report.html.align import differing
from migrate.report.html.markup import EMPTY, Markup, join, tag, text
from migrate.report.html.rows import Lines, Row, Run, lines_of, runs
from migrate.report.html.syntax import coloured, painted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from migrate.report.formats.about import Documented
    from migrate.report.html.syntax import Coloured
    from migrate.report.model import Change

MINUS, DASH = "\u2212", "\u2013"
MOST_FOLDED = 2_000  # lines of a gap that are put into the page
MOST_ROWS = 3_000  # of what changes: a file with more is closed at first
LONGEST = 4_000  # characters of a line that are shown
#: Of codes that are reasons elsewhere, what they say of a change.
DOES = {"MIG111": "the accelerator does what the program did here by itself: starting and joining processes, apex."}
WORDS = {"\r\n": "CR LF", "\r": "CR", "\n": "LF"}


@dataclass(frozen=True)
class Shown:
    """A file of the page."""

    number: int
    path: str
    cell: int | None  # of a notebook
    old: bytes
    new: bytes | None  # None: it stays as it is
    change: Change | None
    pointed: frozenset[int]  # lines of the old text that something on the page leads to
    remarks: Mapping[int, Sequence[Markup]]  # what is said of a line, below it
    explained: Mapping[str, Documented]

    @property
    def anchor(self) -> str:
        """The id of the file."""
        return f"f{self.number}"

    def line(self, number: int) -> str:
        """The id of a line of the old text."""
        return f"{self.anchor}L{number}"

    @cached_property
    def lines(self) -> Lines:
        """Those of the old text."""
        return lines_of(self.old)

    @cached_property
    def new_lines(self) -> Lines:
        """Those of the new text, which may be the old one."""
        return self.lines if self.new is None else lines_of(self.new)

    @cached_property
    def runs(self) -> list[Run]:
        """The rows."""
        every = self.change.edits if self.change is not None else ()
        edits = [edit for edit in every if edit.cell == self.cell or not edit.cell]  # 0: an import, of any cell
        return runs(self.lines, self.new_lines, edits, self.pointed)

    def counted(self) -> tuple[int, int]:
        """How many lines are added, and how many go."""
        changed = [row for run in self.runs if run.changes for row in run.rows]
        return sum(row.new is not None for row in changed), sum(row.old is not None for row in changed)


def file(shown: Shown) -> Markup:
    """One file, foldable, with its name and what happens to it."""
    return _Table(shown).section()


class _Table:
    """A file being written."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._old, self._new = shown.lines, shown.new_lines
        self._colours = coloured(self._old.texts)
        self._new_colours = self._colours if shown.new is None else coloured(self._new.texts)
        self._is_changed = shown.new is not None

    def section(self) -> Markup:
        added, gone = self._shown.counted()
        changed = sum(len(run.rows) for run in self._shown.runs if run.changes)
        title = tag("h3", tag("span", text(self._shown.path), class_="path"), self._cell())
        counts = join((_count("+", added, "added"), _count(MINUS, gone, "removed")))
        state = counts if self._is_changed else tag("span", text("not changed"), class_="quiet")
        return tag(
            "details",
            tag("summary", title, state, class_="bar"),
            *self._facts(),
            tag("div", *self._parts(), class_="code both" if self._is_changed else "code one"),
            class_="file",
            id=self._shown.anchor,
            open=changed <= MOST_ROWS,
        )

    def _cell(self) -> Markup:
        return EMPTY if self._shown.cell is None else tag("span", text(f" cell {self._shown.cell}"), class_="quiet")

    def _facts(self) -> Iterator[Markup]:
        """What does not show in the text: how lines end, comments that went away."""
        if self._old.usual_end != "\n":
            yield tag("p", text(f"The lines of this file end with {WORDS[self._old.usual_end]}."), class_="fact")
        every = self._shown.change.lost_comments if self._shown.change is not None else ()
        lost = [each for each in every if self._shown.cell is None or each.startswith(f"cell {self._shown.cell}:")]
        if lost:
            told = (tag("li", tag("code", text(comment))) for comment in lost)
            yield tag("div", text("Comments that went with their statement:"), tag("ul", *told), class_="fact")

    def _parts(self) -> Iterator[Markup]:
        """Tables, with what is folded away between them."""
        waiting: list[Markup] = []
        for run in self._shown.runs:
            if not run.folded:
                waiting += self._run(run)
                continue
            if waiting:
                yield self._table(waiting)
                waiting = []
            yield self._gap(run)
        if waiting:
            yield self._table(waiting)

    def _gap(self, run: Run) -> Markup:
        first, last = run.rows[0].old, run.rows[-1].old
        assert first is not None
        assert last is not None
        told = f"{counted(len(run.rows), 'unchanged line')} ({first + 1}{DASH}{last + 1})"
        if len(run.rows) > MOST_FOLDED:
            return tag("p", text(f"{told}, left out of this page"), class_="gap")
        return tag("details", tag("summary", text(told)), self._table(list(self._run(run))), class_="gap")

    def _table(self, rows: Sequence[Markup]) -> Markup:
        widths = ("num", "src", "num", "src") if self._is_changed else ("num", "src")
        columns = tag("colgroup", *(tag("col", class_=width) for width in widths))
        return tag("table", columns, tag("tbody", *rows))

    def _run(self, run: Run) -> Iterator[Markup]:
        if run.changes:
            yield self._why(run)
        for row in run.rows:
            yield self._row(row, run.changes)
            if row.old is not None:
                for remark in self._shown.remarks.get(row.old + 1, ()):
                    yield tag("tr", tag("td", remark, colspan=self._span), class_="remark")

    @property
    def _span(self) -> int:
        return 4 if self._is_changed else 2

    def _why(self, run: Run) -> Markup:
        told = [_reason(code, self._shown.explained) for code in run.codes]
        shown = told or [tag("li", text("no rule says why"))]
        cell = tag("td", tag("ul", *shown), colspan=self._span)
        return tag("tr", cell, class_="why", data_stop=True, tabindex=-1)

    def _row(self, row: Row, changes: bool) -> Markup:
        old, new = row.old, row.new
        if not self._is_changed:
            assert old is not None
            return tag("tr", *self._side(self._old, old, self._colours, (), "", "del"), id=self._shown.line(old + 1))
        left: Sequence[tuple[int, int]] = ()
        right: Sequence[tuple[int, int]] = ()
        if changes and old is not None and new is not None:
            left, right = differing(self._old.texts[old], self._new.texts[new])
        cells = (
            *self._side(self._old, old, self._colours, left, MINUS if changes else "", "del"),
            *self._side(self._new, new, self._new_colours, right, "+" if changes else "", "ins"),
        )
        return tag("tr", *cells, class_=None if changes else "same", id=old is not None and self._shown.line(old + 1))

    def _side(
        self,
        lines: Lines,
        number: int | None,
        colours: Sequence[Sequence[Coloured]],
        marks: Sequence[tuple[int, int]],
        sign: str,
        mark: str,
    ) -> tuple[Markup, Markup]:
        if number is None:
            return tag("td", class_="num none"), tag("td", class_="src none")
        state = {MINUS: " gone", "+": " come"}.get(sign, "")
        line = lines.texts[number]
        painting = painted(line[:LONGEST], colours[number], [m for m in marks if m[1] <= LONGEST], mark)
        more = text(f"… {len(line) - LONGEST:,} more characters") if len(line) > LONGEST else EMPTY
        shown = tag("span", painting, more, _end(lines, number), class_="text")
        signed = tag("span", text(sign or " "), class_="sign", aria_hidden=not sign and "true")
        return tag("td", text(str(number + 1)), class_=f"num{state}"), tag("td", signed, shown, class_=f"src{state}")


def _end(lines: Lines, number: int) -> Markup:
    """How a line ends, where that is not as most of them do."""
    end = lines.ends[number]
    if not end:
        return tag("span", text("no newline at the end of the file"), class_="odd")
    return EMPTY if end == lines.usual_end else tag("span", text(WORDS[end]), class_="odd")


def _count(sign: str, number: int, word: str) -> Markup:
    return tag("span", text(f"{sign}{number:,}"), class_=f"count {word}", title=f"{counted(number, 'line')} {word}")


def _reason(code: str, explained: Mapping[str, Documented]) -> Markup:
    rule = explained.get(code)
    if rule is None:
        return tag("li", tag("code", text(code)))
    link = tag("a", text(code), href=f"#rule-{code}", class_="rule")
    return tag("li", link, text(" "), tag("b", text(rule.name)), text(f" {DOES.get(code, rule.summary)}"))
