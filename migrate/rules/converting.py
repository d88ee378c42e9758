"""The run of the rules over a project.

A program is converted as a whole: its decisions are made first (`migrate.programs.conversion`), then each rule writes
its edits into the program's group of the plan. If one necessary part is refused, the group goes, the program stays as
it was, and the report says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from migrate.analysis.units import module_of
from migrate.programs.along import ALONE, Along
from migrate.programs.conversion import Conversion
from migrate.programs.conversion import convert as decide
from migrate.programs.device.moves import moves_of_models
from migrate.programs.evaluation.orders import orders
from migrate.programs.home.access import OutOfReach
from migrate.programs.home.siblings import siblings
from migrate.programs.limits import limits
from migrate.programs.loops import Loops
from migrate.programs.package import hidden
from migrate.programs.prepare.scripts import begun_by
from migrate.programs.processes.one_seed import seeding_along
from migrate.programs.processes.replicas import decide_seed
from migrate.programs.program import Program, Refusal, programs
from migrate.programs.training.waits import is_for_tpu
from migrate.report.model import Outcome
from migrate.rules import RULES
from migrate.rules.draft import Draft
from migrate.rules.guarded import faults, guarded_collective
from migrate.rules.told import cut_short, doubted, flag, idle, name_of, out_of_sight, refused, told, unnamed_files
from migrate.rules.unconverted import unconverted
from migrate.rules.understood import Understood

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Container, Sequence

    from migrate.analysis.facts import Facts
    from migrate.edits import Plan
    from migrate.options import Options
    from migrate.programs.prepare.visitors import Visitor
    from migrate.programs.training.handed import Ready
    from migrate.report.model import Finding, Summary

#: Calls without an effect: a block under a test of these, or around which they stand, may go when it is emptied.
PURE_CALLS = {
    "torch.cuda.is_available",
    "torch.cuda.device_count",
    "torch.accelerator.is_available",
    "torch.accelerator.device_count",
    "torch.backends.mps.is_available",
    "torch.no_grad",
    "torch.inference_mode",
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
    said, _ = _programs(facts, loops, plan, options, ready, lambda each: not _has(each, apart))
    findings = [*said.findings, *(out_of_sight(facts, use) for use in loops.out_of_sight)]
    findings += [idle(facts, loop) for loop in loops.idle]
    findings += unnamed_files(facts, loops)
    mistakes = tuple(faults(facts))
    findings += mistakes
    findings += [cut_short(path) for path in facts.cut_short]
    return Outcome(told(findings, options), said.summaries, mistakes)


def convert_script(
    facts: Facts,
    plan: Plan,
    options: Options,
    ready: Sequence[Ready],
    mine: Container[ast.AST],
    visitors: tuple[Visitor, ...] = (),
    along: Along = ALONE,
) -> tuple[Outcome, Along]:
    """The same for the programs of some loops alone, as the script sees them to whom these facts belong.

    `along`: what other scripts do in lines that they share, so this one does it, too. What it does in such lines is
    given back beside the outcome.
    """
    said, done = _programs(facts, Loops(facts), plan, options, ready, lambda each: _has(each, mine), visitors, along)
    return replace(said, findings=told(said.findings, options)), done


def _has(program: Program, loops: Container[ast.AST]) -> bool:
    return any(loop.node in loops for loop in program.training)


def _programs(
    facts: Facts,
    loops: Loops,
    plan: Plan,
    options: Options,
    ready: Sequence[Ready],
    is_wanted: Callable[[Program], bool],
    visitors: tuple[Visitor, ...] = (),
    along: Along = ALONE,
) -> tuple[Outcome, Along]:
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
        drawn = orders(facts, loops, program, can_ask=options.target.value == "runtime")
        program.one_seed = decide_seed(facts, loops, program, drawn)
    seeded = seeding_along(facts, wanted, among_others=along.seeds)
    for program in wanted:
        program.along = replace(along, seeds=program in seeded)
    made = [
        _convert_one(facts, loops, program, plan, options, f"program {number}") for number, program in groups.items()
    ]
    _stand_together(made, plan)
    for one in made:
        program, conversion = one.program, one.conversion
        findings += one.said
        findings += [flag(facts, program, loop, converts=conversion is not None) for loop in program.training]
        if conversion is not None:
            findings += [doubted(facts, doubt) for doubt in program.doubts]
        else:
            findings += [refused(facts, program, refusal) for refusal in (*program.refusals, *program.doubts)]
        summaries.append(understood.of(program, conversion))
    moved = (moves_of_models(facts, one.conversion.moves) for one in made if one.conversion is not None)
    done = Along(any(program.one_seed for program in wanted), frozenset(chain.from_iterable(moved)))
    return Outcome(tuple(findings), tuple(summaries)), done


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
    package = options.target.value
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
    loop = name_of(conversion.facts, conversion.program.training[0])
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
