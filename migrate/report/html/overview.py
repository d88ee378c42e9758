"""What happened in numbers, and each program with its map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.options import Mode
from migrate.report.counted import counted, plural
from migrate.report.html.chart import chart
from migrate.report.html.layout import near
from migrate.report.html.markup import EMPTY, Markup, join, sentence, tag, text
from migrate.report.map import Place
from migrate.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from migrate.report.model import Finding, Report, Summary


def numbers(report: Report) -> Markup:
    """The tiles at the top: each number with what it counts, and a word of state that does not rest on colour."""
    loops = report.of(Kind.LOOP)
    converts = sum(bool(loop.converts) for loop in loops)
    done = "converted" if report.written else "would be converted"
    changed = "changed" if report.written else "would change"
    tiles = [
        _tile(len(report.touched), "file", changed, "changes", "good"),
        _tile(converts, "loop", done, "programs", "good"),
        _tile(len(loops) - converts, "loop", "not converted", "left", "bad"),
        _tile(len(report.of(Kind.LEFT)), "place", "left to you", "left", "bad"),
    ]
    if doubtful := report.of(Kind.REVIEW):
        tiles.append(_tile(len(doubtful), "place", "to review", "left", "bad"))
    if faults := report.of(Kind.FAULT):
        tiles.append(_tile(len(faults), "mistake", "", "left", "bad"))
    if report.problems:
        tiles.append(_tile(len(report.problems), "error", "", "problems", "bad"))
    return tag("ul", *tiles, class_="tiles")


def _tile(number: int, thing: str, what: str, target: str, state: str) -> Markup:
    words = f"{plural(number, thing)} {what}".strip()
    shown = tag("a", tag("b", text(f"{number:,}")), text(words), href=f"#{target}")
    return tag("li", shown, class_=state if number else "none")


def what(report: Report, mode: Mode) -> str:
    """One sentence: whether the files are as they were."""
    if report.written:
        return "The files have been converted; this is what has changed in them."
    if not report.changes:
        return "Nothing changes; the files are as they were."
    check = " (--check)" if mode is Mode.CHECK else ""
    return f"Nothing has been written{check}; this is what `migrate --write` would change."


def programs(report: Report, link: Callable[[Place], str], anchors: dict[Finding, str]) -> Markup:
    """Each program: what was understood, its map, and what is said of it."""
    if not report.summaries:
        return tag("p", text("No training program was found."), class_="calm")
    shown = (_program(number, summary, report, link, anchors) for number, summary in enumerate(report.summaries))
    return join(shown)


def _program(
    number: int, summary: Summary, report: Report, link: Callable[[Place], str], anchors: dict[Finding, str]
) -> Markup:
    drawn = summary.map
    loops = {f.place for f in drawn.frames if f.trains} if drawn is not None else set()
    mine = [f for f in report.of(Kind.LOOP) if Place(f.path, f.line, f.cell) in loops]
    state, word = _state(mine, written=report.written)
    said = [f for f in anchors if _belongs(f, loops, summary)]
    return tag(
        "article",
        tag("header", tag("h3", tag("span", text(summary.path), class_="path")), tag("span", text(word), class_=state)),
        tag("p", sentence(f"The program {summary.text}" if summary.text.startswith("trains") else summary.text)),
        chart(drawn, summary.path, link) if drawn is not None else EMPTY,
        _said(said, anchors, summary),
        _together(summary),
        class_="program",
        id=f"p{number}",
    )


def _state(loops: Sequence[Finding], *, written: bool) -> tuple[str, str]:
    if not loops or not all(loop.converts for loop in loops):
        return "badge bad", "left as it is"
    return "badge good", "converted" if written else "would be converted"


def _belongs(finding: Finding, loops: set[Place], summary: Summary) -> bool:
    """Whether a finding is about a loop of the program or, where it names none, about one of its files."""
    if finding.loop is not None:
        return finding.loop in map(str, loops)
    return finding.path in summary.files


def _said(said: Sequence[Finding], anchors: dict[Finding, str], summary: Summary) -> Markup:
    if not said:
        return EMPTY
    places = [near(Place(f.path, f.line, f.cell), summary.path) for f in said]
    items = (
        tag("li", tag("a", text(f"{f.code} {place}"), href=f"#{anchors[f]}"), text(" "), sentence(f.message))
        for f, place in zip(said, places, strict=True)
    )
    title = text(f"What is said of it ({counted(len(said), 'place')})")
    return tag("details", tag("summary", title), tag("ul", *items))


def _together(summary: Summary) -> Markup:
    """The files that stand or fall together."""
    if len(summary.files) < 2:
        return EMPTY
    names = join((tag("code", text(path)) for path in summary.files), ", ")
    return tag("p", text("These files stand or fall together: "), names, class_="quiet")
