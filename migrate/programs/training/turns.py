"""Loops that train and evaluate by turns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import line_of, walk
from migrate.analysis.units import Function
from migrate.programs.program import Program, Refusal
from migrate.programs.training.gradients_off import turned_on, without_gradients
from migrate.programs.training.phases import Phase, Phases
from migrate.programs.training.turning import misread

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact, Loops


def phases_in_turns(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """One loop that trains and evaluates: what fills up the last batch in training must not count in evaluation."""
    yield from _misread(facts, program)
    yield from _unjoined(loops, program)
    phases = Phases(facts)
    by_turns = _by_turns(program)
    for loop in program.training:
        if loop in by_turns or not loop.loaders:  # without a loader no batch is filled up
            continue
        found = phases.of(loop)
        if found.flag is not None and (found.phase is Phase.MIXED or _has_several(facts, program, loop)):
            yield _in_turns(loop, ast.unparse(found.flag.test))
        elif (entered := _without_gradients(facts, loops, loop)) is not None:
            place = f"{facts.file(entered).path}:{entered.lineno}"
            yield _in_turns(loop, f"without gradients at {place}")
        elif (evaluating := _evaluating_step(loops, facts, loop)) is not None:
            place = f"{evaluating.module.path}:{line_of(evaluating.node)}"
            yield _in_turns(loop, f"its steps by {evaluating.name}() at {place} do not train")


def _has_several(facts: Facts, program: Program, loop: LoopFact) -> bool:
    """Whether a loop runs over several loaders, also where one place makes them: `loaders.append(DataLoader(...))`."""
    if len(loop.loaders) > 1 or program.home is None:
        return len(loop.loaders) > 1
    inside = loop.node if loop.unit is program.home else program.statement
    return any(facts.singles.again(origin, program.home, inside) is not None for origin in loop.loaders)


def _in_turns(loop: LoopFact, how: str) -> Refusal:
    return Refusal(
        loop.node,
        "MIG114",
        f"this loop trains or evaluates by turns ({how}), so its evaluation cannot be shared out",
        "write the evaluation as a loop of its own",
    )


def _without_gradients(facts: Facts, loops: Loops, loop: LoopFact) -> ast.Call | None:
    """A call on the way to the backward calls of a loop that is made without gradients: no training comes there.

    `with torch.no_grad(): run_epoch(valid_loader)` above the loop, `@torch.no_grad() def eval_step(batch)` below it.
    """
    inside = set(loops.updates.functions(loop.node))
    if turned_on(facts, inside):
        return None
    return next((call for call in _entries(facts, loop, inside) if without_gradients(facts, call)), None)


def _evaluating_step(loops: Loops, facts: Facts, loop: LoopFact) -> Function | None:
    """What runs a model and does not train, in the place of what does: `self.step(batch)` of two classes' objects."""
    inside = (loop.node, *(unit.node for unit in loops.updates.functions(loop.node)))
    for call in (node for root in inside for node in walk(root).of(ast.Call)):
        targets = facts.targets(call)
        training = [unit for unit in targets if loops.trains(unit.node)]
        others = (unit for unit in targets if unit not in training and loops.calls_model(unit.node))
        if training and (found := next(others, None)) is not None:
            return found
    return None


def _entries(facts: Facts, loop: LoopFact, inside: Container[Unit]) -> Iterator[ast.Call]:
    """The calls by which a program comes to a loop, and from there to its backward calls."""
    in_loop = set(walk(loop.node))
    waiting: list[Unit] = [facts.unit(call) for call in loop.backwards]
    seen: set[Unit] = set()
    while waiting:
        unit = waiting.pop()
        if unit in seen or not isinstance(unit, Function):
            continue
        seen.add(unit)
        calls = facts.callers(unit)
        if unit in inside:  # and not from other loops
            calls = [call for call in calls if call.caller in inside or call.node in in_loop]
        yield from (call.node for call in calls)
        waiting += [call.caller for call in calls]


def _misread(facts: Facts, program: Program) -> Iterator[Refusal]:
    """Loaders taken out of the dictionary in a way that does not tell which they are, once one of them is prepared."""
    last = max((s.lineno for named in program.optimizers for s in named.statements), default=0)
    for turning in program.turnings:
        if (other := misread(facts, turning, last)) is not None:
            yield Refusal(
                other,
                "MIG114",
                f"this takes loaders out of a dictionary of which only {turning.key!r} would be prepared",
                "take them out by their names, in a loop of its own for each",
            )


def _unjoined(loops: Loops, program: Program) -> Iterator[Refusal]:
    """What such a loop adds up in other ways than anew for each phase cannot be joined where it has trained."""
    for loop in _by_turns(program):
        late = [
            a.name
            for a in loops.accumulated(loop)
            if a.joined and (_is_late(a.after, loop.node) or a.is_number is None)
        ]
        names = late or [join.target for join in loops.joined(loop) if _is_late(join.after, loop.node)]
        if names:
            yield Refusal(
                loop.node,
                "MIG114",
                f"{names[0]} is added up where this loop trains and where it evaluates, and cannot be joined for "
                "one of them",
                "write the evaluation as a loop of its own",
            )


def _is_late(after: ast.stmt, loop: ast.stmt) -> bool:
    """Whether shares are joined after more than the loop, and a context around it."""
    return after is not loop and not isinstance(after, (ast.With, ast.AsyncWith))


def _by_turns(program: Program) -> list[LoopFact]:
    return [*(found.loop for found in program.turnings), *(found.loop for found in program.flagged)]
