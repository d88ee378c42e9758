"""What is told of a run: the loops, what became of them, and why some are left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.program import home_anywhere
from migrate.programs.reach.unnamed import files, listed, unnamed, way_out
from migrate.report.model import Finding, Kind
from migrate.rules.draft import finding
from migrate.rules.unconverted import unconverted

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.options import Options
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program, Refusal
    from migrate.source.project import SourceFile

LEFT = "Left as it is"  # how the sentence begins that says so of a program


def told(findings: Iterable[Finding], options: Options) -> tuple[Finding, ...]:
    """What is said, in order, each thing once: files that stand together may have one reason for several programs."""
    once: dict[Finding, Finding] = {}
    for found in findings:
        once.setdefault(replace(found, loop=None) if found.kind in (Kind.NOTE, Kind.LEFT) else found, found)
    ordered = sorted(once.values(), key=lambda f: (f.path, f.line, f.column, f.code))
    return tuple(f for f in ordered if _is_wanted(f, options))


def _is_wanted(found: Finding, options: Options) -> bool:
    """What is selected; a loop, what keeps it from being converted, a mistake, unless it is ignored by its code."""
    always = found.kind in (Kind.LOOP, Kind.LEFT, Kind.FAULT) and not any(
        found.code.startswith(code) for code in options.ignore
    )
    return always or options.wants(found.code)


def flag(facts: Facts, program: Program, loop: LoopFact, *, converts: bool) -> Finding:
    """The finding of a training loop; why it is not converted stands in a finding of its own."""
    name = name_of(facts, loop)
    if converts:
        message, hint = "training loop in plain PyTorch", "migrate --write converts it"
    else:
        reasons = dict.fromkeys(refusal.code for refusal in program.refusals if refusal.code != unconverted.code)
        codes = f" ({', '.join(reasons)})" if reasons else ""
        message, hint = f"training loop in plain PyTorch, not converted{codes}", ""
    return finding(facts, loop.node, unconverted.code, message, hint, Kind.LOOP, name, converts=converts)


def name_of(facts: Facts, loop: LoopFact) -> str:
    return f"{facts.file(loop.node).path}:{loop.node.lineno}"


def out_of_sight(facts: Facts, use: Use) -> Finding:
    name = use.unit.name if isinstance(use.unit, Function) else use.unit.path
    why = f"{name}() trains, and nothing in the named files calls it in a loop"
    way_out = "name the files that call it too, or convert it by hand"
    return finding(facts, use.node, "MIG907", why, way_out, Kind.LOOP, converts=False)


def idle(facts: Facts, loop: LoopFact) -> Finding:
    """A loop that nothing runs: it is left, and what runs beside it is converted."""
    name = loop.unit.name if isinstance(loop.unit, Function) else loop.unit.path
    why = f"{name}() trains, and nothing in the named files calls it: it is left as it is"
    way_out = f"take {name}() out, or name the files that call it, too"
    return finding(facts, loop.node, "MIG907", why, way_out, Kind.LOOP, converts=False)


def unnamed_files(facts: Facts, loops: Loops) -> Iterator[Finding]:
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


def doubted(facts: Facts, doubt: Refusal) -> Finding:
    """An edited program that rests on what is likely."""
    why = f"edited on what is likely, as its annotations have it: {doubt.why}"
    return finding(facts, doubt.node, doubt.code, why, f"look at the edits, or {doubt.way_out}", Kind.REVIEW)


def cut_short(path: str) -> Finding:
    why = "the analysis of this file stopped at its bound before it was done"
    return Finding("MIG905", path, 1, 1, 1, why, "name fewer files at a time, or report the file to us", Kind.NOTE)


def refused(facts: Facts, program: Program, refusal: Refusal) -> Finding:
    loop = name_of(facts, program.training[0])
    return finding(facts, refusal.node, refusal.code, refusal.why, refusal.way_out, Kind.LEFT, loop)
