"""The steps that the pipeline puts together, as values, so that a test may put in its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from migrate.report.model import Change, Edit, Outcome
from migrate.source.parts import parts
from migrate.source.project import Project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from migrate.alone.stage import Stage
    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Role
    from migrate.edits import Plan
    from migrate.options import Options
    from migrate.source.project import SourceFile


@dataclass(frozen=True, slots=True)
class Conversion:
    """What is to be done to a project, and what the rules say about it."""

    outcome: Outcome = field(default_factory=Outcome)
    touched: tuple[str, ...] = ()  # paths of the files that have edits, in order
    plan: Plan | None = None
    broken: Mapping[str, Exception] = field(default_factory=dict)  # paths whose analysis failed: a bug of ours
    ready: Mapping[str, SourceFile] = field(default_factory=dict)  # by path: as the plan's edits find the file
    lost: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by path: comments lost on the way to that


class Applied(Protocol):
    """What applying the plan to one file gave (`migrate.edits.apply.Applied`)."""

    @property
    def content(self) -> bytes: ...
    @property
    def lost_comments(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Engine:
    """`plan` decides, `apply` edits one file in memory, `check` says what is wrong with the result.

    `edits` says which edits made it.
    `parts` divides a project into such as have nothing to do with each other: each is planned by itself. `start` puts
    what trains in a converted notebook into functions that are started on several processes. `ready` is called before
    processes are forked that are going to plan.
    """

    plan: Callable[[Project, Options], Conversion]
    apply: Callable[[SourceFile, Conversion], Applied]
    check: Callable[[SourceFile, Change, Conversion], list[str]]
    parts: Callable[[Project], Sequence[Project]] = lambda project: (project,)
    edits: Callable[[SourceFile, Conversion], Sequence[Edit]] = lambda _, __: ()
    start: Callable[[SourceFile, bytes, Options], bytes] = lambda _file, content, _options: content
    ready: Callable[[], object] = lambda: None


def _plan(project: Project, options: Options) -> Conversion:
    """Facts, then what the rules make of them; of programs that run in several processes, as one process runs them."""
    from migrate.alone import stages  # `migrate --help` needs none of these
    from migrate.analysis import analyse
    from migrate.analysis.known import TABLES

    facts = analyse(project, options.known or TABLES)
    found = stages(facts)
    return _in_stages(project, facts, found, options) if found else _converted(project, facts, options)


def _ready() -> object:
    """Import once what each process would import for itself."""
    from migrate import views
    from migrate.alone import stage

    return views, stage


def _in_stages(project: Project, facts: Facts, found: Sequence[Stage], options: Options) -> Conversion:
    """The conversion of files that were made ready; those of which not every program converts are left as they were.

    `facts` are those of the project as it was read. What they know of libraries by use holds for what is made of it.
    """
    from migrate.alone.trial import is_converted, merged, reason, retold, tied
    from migrate.analysis import analyse

    left: list[tuple[Stage, Conversion]] = []
    while True:
        contents = {path: content for stage in found for path, content in stage.contents.items()}
        now = project.replaced(contents) if contents else project
        conversion = _converted(now, analyse(now, facts.known) if contents else facts, options, found)
        failing = [stage for stage in found if stage.contents and not is_converted(stage, now, conversion)]
        if not failing:
            break
        kept = [stage for stage in found if stage not in failing]
        for stage in failing:
            why = reason(stage, project, now, conversion)
            if why is not None and not stage.is_apart:
                kept.append(replace(stage, is_apart=True))
            elif stage.otherwise is not None and (again := stage.otherwise()) is not None:
                kept.append(again)
            elif why is not None:
                kept.append(replace(stage, contents={}, refusals=(why,)))
            else:
                left.append((stage, retold(conversion, [stage], project)))
        found = kept
    ready = {file.path: file for file in now.named if file.path in contents}
    conversion = tied(retold(conversion, found, project), found)
    for stage, trial in left:
        conversion = merged(conversion, stage, trial)
    touched = tuple(file.path for file in now.named if file.path in conversion.touched or file.path in ready)
    lost = {path: comments for stage in found for path, comments in stage.comments.items()}
    return replace(conversion, touched=touched, ready=ready, lost=lost)


def _converted(project: Project, facts: Facts, options: Options, ready: Sequence[Stage] = ()) -> Conversion:
    from migrate.views import converted

    outcome, plan = converted(project, facts, options, ready)
    return Conversion(outcome, plan.touched, plan, facts.broken)


def _apply(file: SourceFile, conversion: Conversion) -> Applied:
    from migrate.edits.apply import apply  # imports libcst, which a run without edits does not need

    applied = apply(conversion.ready.get(file.path, file), _plan_of(file, conversion))
    if lost := conversion.lost.get(file.path):
        return replace(applied, lost_comments=(*lost, *applied.lost_comments))
    return applied


def _check(file: SourceFile, change: Change, conversion: Conversion) -> list[str]:
    from migrate.selfcheck import check, names

    ready = conversion.ready.get(file.path, file)  # the way to it was checked step by step
    failures = check(ready.content, change.new, ready, _plan_of(ready, conversion))
    if not failures:  # else it may be no program
        failures = names(file.content, change.new)
    return failures if file.notebook is None else [*failures, *file.notebook.faults(change.new)]


def _start(file: SourceFile, content: bytes, options: Options) -> bytes:
    """The module of a converted notebook with its functions.

    Raises:
        NotStarted: what a cell does cannot be done so.
    """
    from migrate.analysis import analyse
    from migrate.analysis.known import TABLES
    from migrate.launching import NotStarted, started

    assert file.notebook is not None
    facts = analyse(Project([replace(file, content=content)]), options.known or TABLES)
    names = next((module.names for module in facts.modules if module.file.path == file.path), {})

    def roles(name: str) -> frozenset[Role]:
        return frozenset(value.role for value in names.get(name, ()))

    try:
        made = started(content.decode(), file.content.decode(), file.notebook.mark, options.target.value, roles)
    except NotStarted as error:
        error.path, error.line = file.path, file.notebook.line(error.cell, 1)
        error.cell = 0  # the line is that of the module, as in every finding before it is told
        raise
    return made.encode()


def _plan_of(file: SourceFile, conversion: Conversion) -> Plan:
    if conversion.plan is None:
        raise ValueError(f"{file.path} is to be edited, and there is no plan. Make one: ENGINE.plan(project, options).")
    return conversion.plan


def _edits(file: SourceFile, conversion: Conversion) -> Sequence[Edit]:
    """Why a file is changed where it is, in the lines of the file as it was read."""
    from migrate.alone.lines import retold_edits
    from migrate.edits.edit import AddImport, Insert

    told: list[Edit] = []
    for edit in _plan_of(file, conversion).edits(file.path):
        line, text, operation = edit.line, "", edit.operation
        if isinstance(operation, AddImport):
            text = operation.code
        if isinstance(operation, Insert):
            line, text = (edit.line if operation.before else edit.end_line), operation.code
        told.append(Edit(edit.rule, line, edit.end_line, text))
    told.sort(key=lambda edit: (edit.line, edit.end_line, edit.code))
    ready = conversion.ready.get(file.path)
    return told if ready is None else retold_edits(told, file.content, ready.content)


ENGINE = Engine(_plan, _apply, _check, parts, _edits, _start, _ready)
