"""What is said of places: what is left and how to do it by hand, and what the rules behind the codes do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.report.html.markup import EMPTY, Markup, join, sentence, tag, text
from migrate.report.html.syntax import coloured, painted
from migrate.report.model import OUR_BUG, Finding, Kind
from migrate.report.place import region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from migrate.errors import MigrateError
    from migrate.report.formats.about import Documented
    from migrate.report.model import Report

#: In the order in which a reviewer wants them, each with its word and what it means.
GROUPS = (
    (Kind.FAULT, "mistake", "Mistakes in code that uses an accelerator already"),
    (Kind.LEFT, "left", "Left to you"),
    (Kind.REVIEW, "review", "To be looked at: these changes rest on what is only likely"),
    (Kind.LOOP, "loop", "Training loops that stay plain PyTorch"),
    (Kind.NOTE, "note", "Good to know"),
)
WORD_OF = {kind: word for kind, word, _ in GROUPS}
LONGEST = 160  # characters of a source line


def listed(report: Report) -> list[Finding]:
    """The findings that have an entry of their own, in the order of the page. A loop that converts has none."""
    order = {kind: number for number, (kind, _, _) in enumerate(GROUPS)}
    wanted = [f for f in report.findings if f.kind in order and not f.converts]
    return sorted(wanted, key=lambda finding: order[finding.kind])


def findings(
    every: Sequence[Finding],
    report: Report,
    rules: Mapping[str, Documented],
    link: Callable[[Finding], str],
) -> Markup:
    """All entries, by kind. `link` gives the address of a line."""
    is_calm = all(finding.kind is Kind.NOTE for finding in every)
    parts = [tag("p", text("Nothing is left to do by hand."), class_="calm")] if is_calm else []
    for kind, _, title in GROUPS:
        mine = [(number, finding) for number, finding in enumerate(every) if finding.kind is kind]
        if mine:
            entries = (_entry(number, finding, report, rules, link) for number, finding in mine)
            parts += [tag("h3", text(title)), tag("div", *entries, class_="entries")]
    return join(parts)


def anchor(number: int) -> str:
    """The id of an entry."""
    return f"n{number}"


def _entry(
    number: int, finding: Finding, report: Report, rules: Mapping[str, Documented], link: Callable[[Finding], str]
) -> Markup:
    rule = rules.get(finding.code)
    code = _code(finding.code, rules)
    name = tag("span", text(rule.name), class_="name") if rule else EMPTY
    place = tag("a", text(finding.place), href=link(finding), class_="place")
    hint = tag("p", tag("b", text(_hint_title(finding))), text(" "), sentence(finding.hint), class_="hint")
    return tag(
        "article",
        tag("header", code, name, place),
        tag("p", sentence(_capital(finding.message))),
        _excerpt(finding, report),
        hint if finding.hint else EMPTY,
        class_=f"entry {WORD_OF[finding.kind]}",
        id=anchor(number),
        data_stop=True,
        tabindex=-1,
    )


def _hint_title(finding: Finding) -> str:
    if finding.code == OUR_BUG:
        return "What to do:"
    return "By hand:" if finding.kind in (Kind.LEFT, Kind.REVIEW, Kind.FAULT) else "What to do:"


def _capital(message: str) -> str:
    """A sentence begins with a capital; a name does not become another."""
    word = message.partition(" ")[0]
    return message[:1].upper() + message[1:] if word.isalpha() and word.islower() else message


def _excerpt(finding: Finding, report: Report) -> Markup:
    """The line of the source."""
    line = region(finding, report).text
    if not line.strip():
        return EMPTY
    shown = line.strip()[:LONGEST]
    return tag(
        "pre", tag("code", painted(shown, coloured([shown])[0]), text("…" if len(line.strip()) > LONGEST else ""))
    )


def remark(number: int, finding: Finding) -> Markup:
    """The same below its line in the code, in one sentence with a link to the entry."""
    link = tag("a", text(finding.code), href=f"#{anchor(number)}", class_="rule")
    word = tag("b", text(f" {WORD_OF[finding.kind]}: "))
    hint = f". {_capital(finding.hint)}" if finding.hint else ""
    return tag(
        "div", link, word, sentence(f"{finding.message.rstrip('.')}{hint}."), class_=f"note {WORD_OF[finding.kind]}"
    )


def problems(found: Iterable[MigrateError]) -> Markup:
    """Input that could not be handled."""
    return tag("ul", *(tag("li", text(str(problem))) for problem in found), class_="problems")


def glossary(codes: Iterable[str], rules: Mapping[str, Documented]) -> Markup:
    """What the rules of some codes do, in full."""
    return join(
        tag(
            "details",
            tag("summary", tag("b", text(code)), text(f" {rules[code].name}: {rules[code].summary}")),
            tag("pre", text(_body(rules[code]))),
            id=f"rule-{code}",
            class_="about",
        )
        for code in sorted(set(codes) & rules.keys())
    )


def _body(rule: Documented) -> str:
    """The documentation below its first line."""
    return rule.documentation.partition("\n")[2].strip("\n")


def _code(code: str, rules: Mapping[str, Documented]) -> Markup:
    return tag("a", text(code), href=f"#rule-{code}", class_="rule") if code in rules else tag("b", text(code))
