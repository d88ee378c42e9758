"""Scripts that share a training function, each converted as the program that it is.

What one script makes never meets what the others make, so each is looked at as if the others were not there. The code
that they share must come out the same for all of them: otherwise, or if one of them is refused, all stay as they were.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from migrate import workers
from migrate.analysis.entrances import entered_from
from migrate.analysis.syntax import first_line, last_line, line_of, walk
from migrate.edits import Plan
from migrate.edits.edit import AddImport, DropAlias, Rewrite, Wrap
from migrate.programs.along import ALONE, Along
from migrate.programs.loops import Loops
from migrate.programs.output.by_rank import asks_rank
from migrate.programs.prepare.scripts import (
    Script,
    asking_for_several,
    evaluating_for_several,
    may_run,
    sharing,
    wrapping_for_several,
)
from migrate.programs.prepare.visitors import visitor
from migrate.report.model import Finding, Kind, Outcome, Summary
from migrate.rules.converting import convert, convert_script
from migrate.rules.told import LEFT, told
from migrate.source.memory import passing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop
    from migrate.analysis.units import Module
    from migrate.edits.edit import Edit
    from migrate.options import Options
    from migrate.programs.training.handed import Ready
    from migrate.source.project import Project, SourceFile

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Bytes of source that are gone through once more, script by script, in all: a minute's work. The largest of 500
#: public repositories in which that helps come to a quarter of it; the tests of a framework would to days.
_MOST = 16 << 20


@dataclass(frozen=True, slots=True)
class View:
    """One script: what the project is to it, and what would be done for it."""

    script: Script
    facts: Facts
    plan: Plan
    outcome: Outcome
    does: Along  # in lines that other scripts may run, too

    @property
    def converts(self) -> bool:
        """Whether one of its training loops is converted."""
        return converts(self.outcome)


def converts(outcome: Outcome) -> bool:
    """Whether one of the training loops that are told of is converted."""
    return any(finding.kind is Kind.LOOP and finding.converts for finding in outcome.findings)


def converted(project: Project, facts: Facts, options: Options, ready: Sequence[Ready] = ()) -> tuple[Outcome, Plan]:
    """What is said of a project and what is to be done to it."""
    # A file without a word of PyTorch is not looked at for itself; where others import it, it may have to follow.
    files = tuple(dict.fromkeys((*project.files, *(module.file for module in facts.editable))))
    plan = Plan(files)
    outcome = convert(facts, plan, options, ready)
    loops = Loops(facts)
    places = {(f.path, f.line) for f in outcome.findings if f.kind is Kind.LOOP and not f.converts}
    left = {loop.node for loop in loops.training if (facts.file(loop.node).path, loop.node.lineno) in places}
    asking = asking_for_several(facts, {path for each in ready if each.is_apart for path in each.paths})
    left |= _entered(facts, loops, asking.values()) if asking else set()
    shared = evaluating_for_several(facts, loops, left) | wrapping_for_several(facts, loops, left)
    together = outcome, plan
    for bound in (asking | shared, asking) if shared else (asking,):
        groups = [group for group in sharing(facts, loops, left, bound) if any(script.loops & left for script in group)]
        groups = list(_affordable(facts, groups))
        if not groups or facts.broken:
            continue
        apart = frozenset(node for group in groups for script in group for node in script.loops)
        plan = Plan(files)
        outcome = convert(facts, plan, options, ready, apart)
        for group in groups:
            sight = _Sight(project, facts, files, options, ready, group)
            outcome = _with(outcome, _outcomes(sight, plan), options)
        told_of = {(finding.path, finding.line) for finding in outcome.findings if finding.kind is Kind.LOOP}
        is_worse = bound is not asking and not _converting(together[0]) <= _converting(outcome)
        if all(_places(facts, s) <= told_of for g in groups for s in g) and not is_worse:
            return outcome, plan
    return together


def _affordable(facts: Facts, groups: Iterable[tuple[Script, ...]]) -> Iterator[tuple[Script, ...]]:
    """The groups whose scripts are looked at one by one; the others are told what was found of all of them together."""
    left = _MOST
    for group in groups:
        cost = len(group) * sum(len(module.file.content) for module in facts.reach.around(group[0].module))
        if cost <= left:
            left -= cost
            yield group


def _converting(outcome: Outcome) -> set[tuple[str, int]]:
    return {(f.path, f.line) for f in outcome.findings if f.kind is Kind.LOOP and f.converts}


class _Sight:
    """What a group of scripts is looked at with: each of them as if the others were not there."""

    def __init__(
        self,
        project: Project,
        facts: Facts,
        files: Sequence[SourceFile],
        options: Options,
        ready: Sequence[Ready],
        group: tuple[Script, ...],
    ) -> None:
        self._facts, self._files = facts, files
        self._ready, self.options, self.group = ready, options, group
        self._near = _beside(project, facts, group)
        self._guests = tuple(visitor(facts, module) for module in facts.modules if module in group[0].visitors)

    def view(self, script: Script, along: Along = ALONE) -> View:
        """What would be done for one of the scripts; `along`: what others do in lines that they share."""
        from migrate.analysis import analyse

        guests = self._guests
        facts = analyse(self._near.hiding(_others(self._facts, self.group, script)), self._facts.known)
        plan = Plan(self._files)
        outcome, does = convert_script(facts, plan, self.options, self._ready, script.loops, guests, along)
        more = tuple(guest.module.path for guest in guests if plan.edits(guest.module.path))
        summaries = tuple(replace(summary, files=(*summary.files, *more)) for summary in outcome.summaries)
        return View(script, facts, plan, replace(outcome, summaries=summaries), does)

    def outcomes(self, scripts: Sequence[Script]) -> list[Outcome]:
        """What is said of scripts for which nothing is going to be done: by several processes, where that is faster."""
        size = sum(len(file.content) for file in self._near.named)
        sizes = [size] * len(scripts)
        with passing() as forget:

            def outcome(number: int) -> Outcome:
                said = self.view(scripts[number]).outcome
                forget()
                return said

            made = dict(workers.results(outcome, sizes, workers.count(sizes, self.options.jobs)))
        return [made[number] for number in range(len(scripts))]


def _outcomes(sight: _Sight, plan: Plan) -> Sequence[Outcome]:
    """What is said of the scripts of a group; what is done for them is added to the plan.

    Once one of them is left, all are, and nothing but what is said of the others is asked for. Where they share the
    lines that seed one of them, or that move its model, all are seeded, and all models are moved.
    """
    views: list[View] = []
    for number, script in enumerate(sight.group):
        view = sight.view(script)
        if not view.converts:
            said = [*(each.outcome for each in views), view.outcome]
            views.clear()  # what was found out about them is large
            del view
            return _left(script, [*said, *sight.outcomes(sight.group[number + 1 :])])
        views.append(view)
    along = reduce(or_, (view.does for view in views))
    if along != ALONE and any(_disagreements(views)):
        views = [each if each.does == along else sight.view(each.script, along) for each in views]
        if left := [view for view in views if not view.converts]:
            return _left(left[0].script, [view.outcome for view in views])
    if (found := next(_disagreements(views), None)) is not None:
        return [_as_left(view, found) for view in views]
    for view in views:
        plan.absorb(view.plan)
    return [view.outcome for view in views]


def _entered(facts: Facts, loops: Loops, modules: Iterable[frozenset[Module]]) -> set[Loop]:
    """The training loops that are entered from some modules."""
    scripts = {module for each in modules for module in each}
    return {loop.node for loop in loops.training if scripts.intersection(entered_from(facts, loop.unit))}


def _left(first: Script, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """What is said of the scripts of a group of which one is left, for its own reasons."""
    why = f"it shares code with {first.path}, which is left"
    return [
        Outcome(_not_converted(said, f": {why}"), _left_for(said, why)) if converts(said) else said for said in outcomes
    ]


def _beside(project: Project, facts: Facts, group: tuple[Script, ...]) -> Project:
    """The project without what has nothing to do with a group, and need not be looked at for each of its scripts."""
    near = facts.reach.around(group[0].module)
    return project.hiding(frozenset(module.file.path for module in facts.modules if module not in near))


def _places(facts: Facts, script: Script) -> set[tuple[str, int]]:
    return {(facts.file(loop).path, line_of(loop)) for loop in script.loops}


def _others(facts: Facts, group: tuple[Script, ...], script: Script) -> frozenset[str]:
    """The files of the other scripts of a group and of its visitors, and those that only these import."""
    gone = {module for each in group if each is not script for module in (each.module, *each.starters)}
    gone |= script.visitors
    importers: dict[Module, set[Module]] = {module: set() for module in facts.modules}
    for module in facts.modules:
        for imported in module.imports:
            importers[imported].add(module)
    while more := {m for m, by in importers.items() if by and by <= gone and m not in gone and m is not script.module}:
        gone |= more
    return frozenset(module.file.path for module in gone)


def _with(outcome: Outcome, more: Sequence[Outcome], options: Options) -> Outcome:
    findings = [*outcome.findings, *_loops_once(finding for each in more for finding in each.findings)]
    summaries = dict.fromkeys((*outcome.summaries, *(summary for each in more for summary in each.summaries)))
    return replace(outcome, findings=told(findings, options), summaries=tuple(summaries))


def _loops_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings in which a loop that several scripts share is one, with the most reasons that are said of it."""
    loops: dict[tuple[str, int], Finding] = {}
    for finding in findings:
        if finding.kind is not Kind.LOOP:
            yield finding
        else:
            place = finding.path, finding.line
            loops[place] = max(loops.get(place, finding), finding, key=_reasons)
    yield from loops.values()


def _reasons(loop: Finding) -> tuple[bool, int]:
    return not loop.converts, loop.message.count("MIG")


# --- code that is shared --------------------------------------------------------------------------------------------


def _disagreements(views: Sequence[View]) -> Iterator[Finding]:
    """Code that two scripts run, and that would have to become something else for each."""
    for one in views:
        edits = one.plan.edits()
        for other in views:
            for edit in edits if other is not one else ():
                if not _is_made(edit, other) and _is_met(edit, other.facts):
                    yield _refused(edit, one, other)


def _is_made(edit: Edit, view: View) -> bool:
    """Whether a script wants an edit, too, or does not mind: what is imported, and what asks RANK, is for all."""
    operation = edit.operation
    if isinstance(operation, (AddImport, DropAlias)):
        return True
    code = operation.header if isinstance(operation, Wrap) else ""
    code = operation.template if isinstance(operation, Rewrite) else code
    if asks_rank(code):
        return True
    return any((e.address, e.operation) == (edit.address, edit.operation) for e in view.plan.edits(edit.path))


def _is_met(edit: Edit, facts: Facts) -> bool:
    """Whether the code of an edit runs in a script."""
    module = next((module for module in facts.modules if module.file.path == edit.path), None)
    if module is None:
        return False
    around = [n for n in walk(module.tree) if isinstance(n, _FUNCTIONS) and _holds(n, edit.line)]
    units = [unit for unit in facts.functions if around and unit.node is around[-1]]  # the innermost
    return not units or any(may_run(facts, unit) for unit in units)


def _holds(node: ast.FunctionDef | ast.AsyncFunctionDef, line: int) -> bool:
    return first_line(node) <= line <= last_line(node)


def _refused(edit: Edit, one: View, other: View) -> Finding:
    why = f"this would change for {one.script.path}, and {other.script.path} runs it, too, where it must stay as it is"
    way_out = "give each script a copy of the function, then run migrate again"
    return Finding("MIG901", edit.path, edit.line, 1, edit.end_line, why, way_out, Kind.LEFT)


def _left_for(outcome: Outcome, why: str) -> tuple[Summary, ...]:
    return tuple(
        replace(s, text=f"{s.text} {LEFT}: {why}.") if s.text and f" {LEFT}" not in s.text else s
        for s in outcome.summaries
    )


def _as_left(view: View, why: Finding) -> Outcome:
    told_of = f"what it shares with others would change for it alone ({why.code})"
    return Outcome((*_not_converted(view.outcome, f" ({why.code})"), why), _left_for(view.outcome, told_of))


def _not_converted(outcome: Outcome, why: str) -> tuple[Finding, ...]:
    """What is said of a script that is left although some of its loops would convert: those have this reason."""
    message = f"training loop in plain PyTorch, not converted{why}"
    loops = [finding for finding in outcome.findings if finding.kind is Kind.LOOP]
    left = [loop for loop in loops if not loop.converts]
    reasons = (f for f in outcome.findings if f.kind is not Kind.LOOP and any(f.code in loop.message for loop in left))
    return (*(replace(f, message=message, hint="", converts=False) if f.converts else f for f in loops), *reasons)
