"""Whether what was made ready could be converted, and how that is told in the lines of the original."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from migrate.alone.lines import Lines, retold_findings, retold_summaries
from migrate.programs.marker import ACCELERATOR, PRECISION
from migrate.programs.program import Refusal
from migrate.report.model import Finding, Kind, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.alone.stage import Stage
    from migrate.edits import Plan
    from migrate.source.project import Project


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef)


class Planned(Protocol):
    """What the engine plans (`migrate.engine.Conversion`)."""

    @property
    def outcome(self) -> Outcome: ...
    @property
    def plan(self) -> Plan | None: ...


P = TypeVar("P", bound=Planned)


def is_converted(stage: Stage, project: Project, planned: Planned) -> bool:
    """Whether each training loop in the files converts, and nothing is left that stands for something else."""
    return _converts(stage, planned) and not any(_left_open(path, project, planned) for path in stage.contents)


def reason(stage: Stage, original: Project, project: Project, planned: Planned) -> Refusal | None:
    """Why files whose loops all convert are left: code of them asks what the accelerator cannot tell there."""
    for path in sorted(stage.contents) if _converts(stage, planned) else ():
        if left := _left_open(path, project, planned):
            tree = next(file for file in original.named if file.path == path).tree
            named = (n for n in ast.walk(tree) if isinstance(n, _NAMED) and n.name == left[-1])
            where = f"{left[-1]}()" if left[-1] else "the module"
            why = f"{where} asks which process it runs in, and the accelerator cannot be brought there"
            return Refusal(
                next(named, tree.body[0]), "MIG113", why, "hand over what it asks for, or ask where it is called"
            )
    return None


def _converts(stage: Stage, planned: Planned) -> bool:
    tied = (summary.files for summary in planned.outcome.summaries if stage.paths.intersection(summary.files))
    paths = stage.paths.union(*tied)  # of the loops that these files come to, too
    loops = [f for f in planned.outcome.findings if f.kind is Kind.LOOP and f.path in paths]
    return bool(loops) and all(loop.converts for loop in loops)


def _left_open(path: str, project: Project, planned: Planned) -> list[str]:
    """The functions of a file in which something still stands for the accelerator; "" is the module."""
    from migrate.edits.apply import apply

    file = next(file for file in project.named if file.path == path)
    names = (ACCELERATOR, PRECISION)
    if not any(name.encode() in file.content for name in names) or planned.plan is None:
        return []
    content = apply(file, planned.plan).content
    if not any(name.encode() in content for name in names):
        return []
    named = [node for node in ast.walk(ast.parse(content)) if isinstance(node, _NAMED)]
    asking = (n for n in named if any(isinstance(inner, ast.Name) and inner.id in names for inner in ast.walk(n)))
    return ["", *(node.name for node in asking)]


def retold(planned: P, stages: Sequence[Stage], project: Project) -> P:
    """The same, with findings and summaries in the lines of the original files."""
    old = {file.path: file.content for file in project.named}
    lines = {path: Lines(old[path], new) for stage in stages for path, new in stage.contents.items()}
    if not lines:
        return planned
    notes = (note for stage in stages for note in stage.notes if note.path in lines)
    findings = sorted(
        [*retold_findings(planned.outcome.findings, lines), *notes], key=lambda f: (f.path, f.line, f.column, f.code)
    )
    outcome = replace(
        planned.outcome,
        findings=tuple(findings),
        summaries=tuple(retold_summaries(planned.outcome.summaries, lines)),
    )
    return replace(planned, outcome=outcome)  # type: ignore[type-var]


def tied(planned: P, stages: Sequence[Stage]) -> P:
    """The same, with the files that were made ready tied to the programs that come to them: none may change alone."""
    summaries = planned.outcome.summaries
    for stage in stages:
        summaries = tuple(
            replace(summary, files=tuple(sorted({*summary.files, *stage.contents})))
            if stage.paths.intersection(summary.files)
            else summary
            for summary in summaries
        )
    return replace(planned, outcome=replace(planned.outcome, summaries=summaries))  # type: ignore[type-var]


def merged(planned: P, stage: Stage, trial: P) -> P:
    """What is said of files that were left: what kept them back when they were tried."""
    mine = [f for f in planned.outcome.findings if f.path in stage.paths]
    if any(f.kind is Kind.LOOP and f.converts for f in mine):
        return planned  # another way was found
    kinds = (Kind.LOOP, Kind.LEFT)
    kept = [f for f in planned.outcome.findings if f.path not in stage.paths or f.kind not in kinds]
    tried = [_left(f) for f in trial.outcome.findings if f.path in stage.paths and f.kind in kinds]
    if not tried or not any(f.kind is Kind.LEFT for f in tried):
        return planned
    findings = sorted((*kept, *tried), key=lambda f: (f.path, f.line, f.column, f.code))
    summaries = [s for s in planned.outcome.summaries if s.path not in stage.paths]
    summaries += [s for s in trial.outcome.summaries if s.path in stage.paths]
    return replace(  # type: ignore[type-var]
        planned, outcome=replace(planned.outcome, findings=tuple(findings), summaries=tuple(summaries))
    )


def _left(finding: Finding) -> Finding:
    """A loop that would convert alone is left with the others."""
    if finding.kind is not Kind.LOOP or not finding.converts:
        return finding
    message = "training loop in plain PyTorch, not converted: it shares files with one that is left"
    return replace(finding, message=message, hint="", converts=False)
