"""Every rule, and their run over a project.

A program is converted as a whole: its decisions are made first (`migrate.programs.conversion`), then each rule writes
its edits into the program's group of the plan. If one necessary part is refused, the group goes, the program stays as
it was, and the report says why.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.units import Function, module_of
from migrate.programs.conversion import Conversion
from migrate.programs.conversion import convert as decide
from migrate.programs.home.access import OutOfReach
from migrate.programs.home.siblings import siblings
from migrate.programs.limits import limits
from migrate.programs.loops import LoopFact, Loops
from migrate.programs.package import hidden
from migrate.programs.prepare.scripts import begun_by
from migrate.programs.processes.one_seed import seeding_along
from migrate.programs.processes.replicas import decide_seed
from migrate.programs.program import Program, Refusal, home_anywhere, programs
from migrate.programs.reach.unnamed import files, listed, unnamed, way_out
from migrate.programs.training.handed import Ready
from migrate.programs.training.waits import is_for_tpu
from migrate.report.model import Finding, Kind, Outcome, Summary
from migrate.rules.accelerator import accelerator
from migrate.rules.accumulation import accumulation
from migrate.rules.agreement import agreement
from migrate.rules.attributes import model_attributes
from migrate.rules.autocast import autocast
from migrate.rules.backward import backward_call
from migrate.rules.batch_moves import batch_moves
from migrate.rules.clipping import gradient_clipping
from migrate.rules.data_parallel import data_parallel
from migrate.rules.device_choice import device_choice
from migrate.rules.draft import Draft, finding
from migrate.rules.grad_scaler import grad_scaler
from migrate.rules.guarded import faults, guarded_collective
from migrate.rules.host import to_the_host
from migrate.rules.loading import loading
from migrate.rules.metric_sync import metric_sync
from migrate.rules.metrics import metrics
from migrate.rules.model_placement import model_placement
from migrate.rules.one_seed import one_seed
from migrate.rules.output import output
from migrate.rules.prepare import prepare
from migrate.rules.rank_guards import rank_guards
from migrate.rules.reasons import REASONS
from migrate.rules.saving import saving
from migrate.rules.schedules import schedulers
from migrate.rules.tensor_types import tensor_types
from migrate.rules.unconverted import unconverted
from migrate.rules.understood import Understood
from migrate.rules.waiting import waiting
from migrate.rules.without_loader import loops_without_loader

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts, Use
    from migrate.edits import Plan
    from migrate.options import Options
    from migrate.programs.prepare.visitors import Visitor
    from migrate.rules.rule import Rule
    from migrate.source.project import SourceFile

#: In the order in which they write. Those that ask for the accelerator come before `saving` and `output`, which prefer
#: the functions that have it; `device_choice` needs to know every function that got a parameter; `accelerator` hands it
#: out at last, when nobody asks any more.
RULES: tuple[Rule, ...] = (
    unconverted,
    guarded_collective,
    prepare,
    rank_guards,
    model_placement,
    batch_moves,
    tensor_types,
    to_the_host,
    backward_call,
    grad_scaler,
    autocast,
    accumulation,
    agreement,
    one_seed,
    gradient_clipping,
    data_parallel,
    metrics,
    metric_sync,
    loading,
    schedulers,
    model_attributes,
    saving,
    output,
    device_choice,
    accelerator,
    loops_without_loader,
    waiting,
)

PACKAGES = {"runtime": "runtime", "accelerate": "accelerate"}
#: Calls without an effect: a block under a test of these may go when it is emptied.
PURE_CALLS = {
    "torch.cuda.is_available",
    "torch.cuda.device_count",
    "torch.accelerator.is_available",
    "torch.accelerator.device_count",
    "torch.backends.mps.is_available",
    "isinstance",
    "len",
}
PURE_METHODS = ("startswith", "endswith", "lower", "upper", "strip", "isdigit")


def convert(
    facts: Facts, plan: Plan, options: Options, ready: Sequence[Ready] = (), apart: Container[ast.AST] = ()
) -> Outcome:
    """Write the edits of every program into the plan; what is found, left and understood is given back.

    Programs of loops that are `apart` are left to `convert_script`.
    """
    loops = Loops(facts)
    said = _programs(facts, loops, plan, options, ready, lambda each: not _has(each, apart))
    findings = [*said.findings, *(_out_of_sight(facts, use) for use in loops.out_of_sight)]
    findings += _unnamed(facts, loops)
    mistakes = tuple(faults(facts))
    findings += mistakes
    findings += [_cut_short(path) for path in facts.cut_short]
    return Outcome(told(findings, options), said.summaries, mistakes)


def convert_script(
    facts: Facts,
    plan: Plan,
    options: Options,
    ready: Sequence[Ready],
    mine: Container[ast.AST],
    visitors: tuple[Visitor, ...] = (),
    *,
    seeds: bool = False,
) -> Outcome:
    """The same for the programs of some loops alone, as the script sees them to whom these facts belong.

    `seeds`: another script takes a seed in lines that they share, so this one does, too.
    """
    said = _programs(facts, Loops(facts), plan, options, ready, lambda each: _has(each, mine), visitors, seeds=seeds)
    return replace(said, findings=told(said.findings, options))


def _has(program: Program, loops: Container[ast.AST]) -> bool:
    return any(loop.node in loops for loop in program.training)


def told(findings: Iterable[Finding], options: Options) -> tuple[Finding, ...]:
    """What is said, in order, each thing once: files that stand together may have one reason for several programs."""
    once: dict[Finding, Finding] = {}
    for found in findings:
        once.setdefault(replace(found, loop=None) if found.kind in (Kind.NOTE, Kind.LEFT) else found, found)
    ordered = sorted(once.values(), key=lambda f: (f.path, f.line, f.column, f.code))
    return tuple(f for f in ordered if _is_wanted(f, options))


def _programs(
    facts: Facts,
    loops: Loops,
    plan: Plan,
    options: Options,
    ready: Sequence[Ready],
    is_wanted: Callable[[Program], bool],
    visitors: tuple[Visitor, ...] = (),
    *,
    seeds: bool = False,
) -> Outcome:
    plan.pure_calls |= PURE_CALLS
    plan.pure_calls |= {use.node for use in facts.method_calls(*PURE_METHODS)}
    findings: list[Finding] = []
    summaries: list[Summary] = []
    understood = Understood(facts, loops, options)
    found = programs(facts, loops, review=options.review)
    starts = {program.start for program in found if program.start is not None}
    groups = {number: program for number, program in enumerate(found) if is_wanted(program)}
    wanted = list(groups.values())
    for program in wanted:
        program.others = frozenset(starts - {program.start})
        program.visitors = visitors
        _hand_over(facts, program, ready)
        program.annotates = options.annotate
        program.is_for_tpu = is_for_tpu(facts, program, options.hardware)
        program.one_seed = decide_seed(facts, loops, program)
    for program in seeding_along(facts, wanted, among_others=seeds):
        program.seeds_along = True
    made = [
        _convert_one(facts, loops, program, plan, options, f"program {number}") for number, program in groups.items()
    ]
    _stand_together(made, plan)
    for one in made:
        program, conversion = one.program, one.conversion
        findings += one.said
        findings += [_flag(facts, program, loop, conversion is not None) for loop in program.training]
        if conversion is not None:
            findings += [_doubted(facts, doubt) for doubt in program.doubts]
        else:
            findings += [_refused(facts, program, refusal) for refusal in (*program.refusals, *program.doubts)]
        summaries.append(understood.of(program, conversion))
    return Outcome(tuple(findings), tuple(summaries), seeds=any(program.one_seed for program in wanted))


@dataclass(slots=True)
class _Made:
    """What has become of a program: its decisions, if it is converted, and what is said of it then."""

    program: Program
    group: str
    conversion: Conversion | None = None
    said: Sequence[Finding] = ()

    def drop(self, plan: Plan) -> None:
        """Leave the program as it is."""
        plan.drop_group(self.group)
        self.conversion, self.said = None, ()


def _stand_together(made: Sequence[_Made], plan: Plan) -> None:
    """Leave the programs, too, that change the same base as one that is left."""
    left = [one.program for one in made if one.conversion is None]
    for one in made:
        other = next(siblings(one.program, left), None)
        if one.conversion is not None and other is not None:
            first = other.training[0]
            one.program.refusals.append(
                Refusal(
                    one.program.training[0].node,
                    "MIG901",
                    f"it changes the base of its class together with the training at line {first.node.lineno} of "
                    f"{module_of(first.unit).path}, which is left",
                    "see why that one is left, or give this one a base of its own",
                )
            )
            one.drop(plan)


def _hand_over(facts: Facts, program: Program, ready: Sequence[Ready]) -> None:
    """Give a program what was found when its files were made ready, or what was in the way of that."""
    begun = begun_by(facts, program)
    paths = begun.union(loop.unit.module.file.path for loop in program.training)
    for one in ready:
        if paths & one.paths:
            program.handed, program.said = one.handed_to(begun), one.said
            mine = [refusal for refusal in one.refusals if facts.holds(refusal.node)]
            program.refusals, program.unready = [*mine, *program.refusals], bool(mine)


def _is_wanted(found: Finding, options: Options) -> bool:
    """What is selected; a loop, what keeps it from being converted, a mistake, unless it is ignored by its code."""
    always = found.kind in (Kind.LOOP, Kind.LEFT, Kind.FAULT) and not any(
        found.code.startswith(code) for code in options.ignore
    )
    return always or options.wants(found.code)


def _convert_one(
    facts: Facts,
    loops: Loops,
    program: Program,
    plan: Plan,
    options: Options,
    group: str,
) -> _Made:
    """The decisions of a program that is converted; without them, and with its refusals, if not."""
    made = _Made(program, group)
    package = PACKAGES[options.target.value]
    program.refusals = [*limits(facts, loops, program), *hidden(facts, program, package), *program.refusals]
    conversion = decide(facts, loops, program, package)  # all reasons are told at once
    if conversion is None or not _all_selected(program, options):
        return made
    said: list[Finding] = []
    try:
        if not program.refusals:
            _write(conversion, plan, options, group, said)
    except OutOfReach as error:
        program.refusals.append(error.refusal)
    program.refusals += _clashes(plan, program, group)
    made.conversion, made.said = conversion, said
    if program.refusals:
        made.drop(plan)
    return made


def _write(conversion: Conversion, plan: Plan, options: Options, group: str, said: list[Finding]) -> None:
    loop = _name(conversion.facts, conversion.program.training[0])
    for each in RULES:
        if not each.optional or options.wants(each.code):
            each.apply(conversion, Draft(plan, conversion.facts, each.code, group, loop, said))


def _all_selected(program: Program, options: Options) -> bool:
    """Whether no rule that the conversion needs was left out; told under the code of loops, which is not left out."""
    only_find = (unconverted, guarded_collective)
    missing = [r for r in RULES if not r.optional and not options.wants(r.code) and r not in only_find]
    if not missing:
        return True
    first, codes = missing[0], ",".join(each.code for each in missing)
    it, more = ("it", ", which is") if len(missing) == 1 else ("them", f" and {len(missing) - 1} more, which are")
    if any(each.code.startswith(start) for each in missing for start in options.ignore):
        why, way_out = "ignored", f"take {it} out of what is ignored: {codes}"
    else:
        why, way_out = "not selected", f"select {it} too: --select ...,{codes}"
    what = f"the conversion needs {first.code} ({first.name}){more} {why}"
    program.refusals.append(Refusal(program.training[0].node, unconverted.code, what, way_out))
    return False


def _clashes(plan: Plan, program: Program, group: str) -> list[Refusal]:
    """Edits of the group that could not be planned: two at one place, or at a place that cannot be addressed."""
    first = program.training[0].node
    found = [r for r in plan.refused if r.group == group]
    clashing = [c for c in plan.conflicts if group in (c.kept.group, c.lost.group)]
    return [
        *(
            Refusal(first, r.rule, f"line {r.line} cannot be edited: {r.why}", "rewrite that line in a simpler way")
            for r in found
        ),
        *(
            Refusal(
                first,
                c.lost.rule,
                f"two rules want line {c.lost.line}: {c.kept.rule} and {c.lost.rule}",
                "split the statement into two and run migrate again",
            )
            if c.kept.group == c.lost.group
            else Refusal(
                first,
                c.lost.rule,
                f"another program runs line {c.lost.line}, too, and that would have to become something else for it",
                "give each program code of its own there",
            )
            for c in clashing
        ),
    ]


def _flag(facts: Facts, program: Program, loop: LoopFact, converts: bool) -> Finding:
    """The finding of a training loop; why it is not converted stands in a finding of its own."""
    name = _name(facts, loop)
    if converts:
        message, hint = "training loop in plain PyTorch", "migrate --write converts it"
    else:
        reasons = dict.fromkeys(refusal.code for refusal in program.refusals if refusal.code != unconverted.code)
        codes = f" ({', '.join(reasons)})" if reasons else ""
        message, hint = f"training loop in plain PyTorch, not converted{codes}", ""
    return finding(facts, loop.node, unconverted.code, message, hint, Kind.LOOP, name, converts=converts)


def _name(facts: Facts, loop: LoopFact) -> str:
    return f"{facts.file(loop.node).path}:{loop.node.lineno}"


def _out_of_sight(facts: Facts, use: Use) -> Finding:
    name = use.unit.name if isinstance(use.unit, Function) else use.unit.path
    why = f"{name}() trains, and nothing in the named files calls it in a loop"
    way_out = "name the files that call it too, or convert it by hand"
    return finding(facts, use.node, "MIG907", why, way_out, Kind.LOOP, converts=False)


def _unnamed(facts: Facts, loops: Loops) -> Iterator[Finding]:
    """Where named files lead to training loops in files that were not named; all files to name, once a named file."""
    found: dict[SourceFile, list[tuple[LoopFact, ast.Call]]] = {}
    for loop, call in loops.unnamed:
        found.setdefault(facts.file(call), []).append((loops.as_training(loop), call))
    for reached in found.values():
        paths: dict[str, None] = {}
        for fact, _ in reached:
            paths.update(dict.fromkeys(files(facts, loops, [fact], home_anywhere(facts, loops, [fact]))))
        missing = unnamed(facts, paths)
        places = ", ".join(f"{facts.file(fact.node).path}:{fact.node.lineno}" for fact, _ in reached)
        loop_or_loops = "loop" if len(reached) == 1 else "loops"
        why = f"this leads to the training {loop_or_loops} in {places}: the program needs {listed(missing)}"
        yield finding(facts, reached[0][1], "MIG907", why, way_out(paths, missing), Kind.NOTE)


def _doubted(facts: Facts, doubt: Refusal) -> Finding:
    """An edited program that rests on what is likely."""
    why = f"edited on what is likely, as its annotations have it: {doubt.why}"
    return finding(facts, doubt.node, doubt.code, why, f"look at the edits, or {doubt.way_out}", Kind.REVIEW)


def _cut_short(path: str) -> Finding:
    why = "the analysis of this file stopped at its bound before it was done"
    return Finding("MIG905", path, 1, 1, 1, why, "name fewer files at a time, or report the file to us", Kind.NOTE)


def _refused(facts: Facts, program: Program, refusal: Refusal) -> Finding:
    loop = _name(facts, program.training[0])
    return finding(facts, refusal.node, refusal.code, refusal.why, refusal.way_out, Kind.LEFT, loop)


__all__ = ["REASONS", "RULES", "convert", "convert_script", "told"]
