"""What `--verify` found: the verdict on each contract, and the losses of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from migrate.report.counted import counted
from migrate.report.html.curves import Curve, losses
from migrate.report.html.markup import EMPTY, Markup, tag, text

if TYPE_CHECKING:
    from collections.abc import Sequence


class Contract(Protocol):
    """What is promised."""

    @property
    def code(self) -> str: ...
    @property
    def title(self) -> str: ...


class Outcome(Protocol):
    """What a verdict says; `value` is "pass", "fail" or "not checked"."""

    @property
    def value(self) -> str: ...


class Verdict(Protocol):
    """One contract on one number of processes."""

    @property
    def contract(self) -> Contract: ...
    @property
    def processes(self) -> int: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def message(self) -> str: ...
    @property
    def difference(self) -> object | None: ...


class Verification(Protocol):
    """Everything that was found about one script (`migrate.verify.model.Verification`)."""

    @property
    def script(self) -> str: ...
    @property
    def arguments(self) -> Sequence[str]: ...
    @property
    def steps(self) -> int: ...
    @property
    def verdicts(self) -> Sequence[Verdict]: ...
    @property
    def runs(self) -> Sequence[Curve]: ...
    @property
    def remarks(self) -> Sequence[str]: ...


STATES = {"pass": "good", "fail": "bad"}


def verification(found: Verification) -> Markup:
    """The section of one script."""
    command = " ".join((found.script, *found.arguments))
    ran = tag("p", tag("code", text(command)), text(f", {counted(found.steps, 'step')} of each run"))
    remarks = tag("ul", *(tag("li", text(remark)) for remark in found.remarks)) if found.remarks else EMPTY
    return tag("article", ran, _verdicts(found.verdicts), losses(found.runs), remarks, class_="verification")


def _verdicts(verdicts: Sequence[Verdict]) -> Markup:
    titles = ("Contract", "Processes", "Verdict", "What was compared")
    head = tag("tr", *(tag("th", text(title), scope="col") for title in titles))
    rows = (_verdict(verdict) for verdict in verdicts)
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows), class_="verdicts"), class_="wide")


def _verdict(verdict: Verdict) -> Markup:
    differs = tag("div", text(str(verdict.difference)), class_="differs") if verdict.difference is not None else EMPTY
    state = f"badge {STATES.get(verdict.outcome.value, 'plain')}"
    return tag(
        "tr",
        tag("td", tag("b", text(verdict.contract.code)), text(f" {verdict.contract.title}")),
        tag("td", text(str(verdict.processes))),
        tag("td", tag("span", text(verdict.outcome.value), class_=state)),
        tag("td", text(verdict.message), differs),
    )
