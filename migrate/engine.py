"""The steps that the pipeline puts together, as values, so that a test may put in its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from migrate.report.model import Change, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from migrate.edits import Plan
    from migrate.options import Options
    from migrate.source.project import Project, SourceFile


@dataclass(frozen=True, slots=True)
class Conversion:
    """What is to be done to a project, and what the rules say about it."""

    outcome: Outcome = field(default_factory=Outcome)
    touched: tuple[str, ...] = ()  # paths of the files that have edits, in order
    plan: Plan | None = None
    broken: Mapping[str, Exception] = field(default_factory=dict)  # paths whose analysis failed: a bug of ours


class Applied(Protocol):
    """What applying the plan to one file gave (`migrate.edits.apply.Applied`)."""

    @property
    def content(self) -> bytes: ...
    @property
    def lost_comments(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Engine:
    """`plan` decides, `apply` edits one file in memory, `check` says what is wrong with the result."""

    plan: Callable[[Project, Options], Conversion]
    apply: Callable[[SourceFile, Conversion], Applied]
    check: Callable[[SourceFile, Change, Conversion], list[str]]


def _plan(project: Project, options: Options) -> Conversion:
    """Facts, then what the rules make of them."""
    from migrate.analysis import analyse  # `migrate --help` needs none of these
    from migrate.analysis.known import TABLES
    from migrate.edits import Plan
    from migrate.rules import convert

    facts = analyse(project, options.known or TABLES)
    # A file without a word of PyTorch is not looked at for itself; where others import it, it may have to follow.
    files = tuple(dict.fromkeys((*project.files, *(module.file for module in facts.editable))))
    plan = Plan(files)
    outcome = convert(facts, plan, options)
    return Conversion(outcome, tuple(file.path for file in files if plan.touches(file)), plan, facts.broken)


def _apply(file: SourceFile, conversion: Conversion) -> Applied:
    from migrate.edits.apply import apply  # imports libcst, which a run without edits does not need

    return apply(file, _plan_of(file, conversion))


def _check(file: SourceFile, change: Change, conversion: Conversion) -> list[str]:
    from migrate.selfcheck import check

    return check(change.old, change.new, file, _plan_of(file, conversion))


def _plan_of(file: SourceFile, conversion: Conversion) -> Plan:
    if conversion.plan is None:
        raise ValueError(f"{file.path} is to be edited, and there is no plan. Make one: ENGINE.plan(project, options).")
    return conversion.plan


ENGINE = Engine(_plan, _apply, _check)
