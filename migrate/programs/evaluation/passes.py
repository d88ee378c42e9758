"""The evaluations of a program together: a loader is used in one way only, so one loop can keep others back.

A loader that is trained on is prepared, so evaluating on it must be shared out, or every process must get the whole
batch. Such a pass must be known for an evaluation: where nothing tells, gradients are turned off around it.
"""

from __future__ import annotations

import ast
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, of_role, origins
from migrate.analysis.syntax import arguments, walk
from migrate.analysis.units import Class, Function
from migrate.programs.evaluation.exact import asked_whole, decide, gathered_first, is_evaluating
from migrate.programs.evaluation.gradients import needed
from migrate.programs.evaluation.left_in_eval import begun_as_training, begun_early
from migrate.programs.evaluation.measured import measured_below
from migrate.programs.evaluation.verdicts import InFull, Shared
from migrate.programs.home.places import evaluated_beside
from migrate.programs.home.raw import goes_over_raw
from migrate.programs.home.set_up import running_raw
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.outsiders import units_inside
from migrate.programs.training.gradients_off import without_gradients
from migrate.programs.training.modes import Mode, Modes
from migrate.programs.values.takes import taken

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import LoopFact, Loops


def evaluations(
    facts: Facts, loops: Loops, program: Program, handed_out: set[ast.AST], *, can_ask: bool = True
) -> tuple[list[Shared], list[InFull]]:
    """Which evaluation loops are shared out, and which each process runs in full.

    `can_ask`: the accelerator knows how many steps an evaluation has.
    """
    modes, raw = copy(program.once(Modes, facts)), running_raw(facts, program)  # gradients may be turned off
    beside = _beside_training(program)
    decided: list[Shared | InFull] = []
    for loop in program.evaluation:
        if loop.unit in raw:
            found: Shared | InFull = _beside_home(facts, program, loop)
        elif loop.loaders & (program.partly_prepared | program.kept_whole):
            found = InFull(loop, "its loader stays whole, beside the one that is trained on")
        else:
            found = decide(facts, program, modes, loop)
        if isinstance(found, InFull) and loop.loaders & beside and found.is_raw is False:
            found = _whole_batches(facts, loops, program, modes, found)
        if can_ask and isinstance(found, InFull) and loop.loaders & beside and found.is_raw is False:
            found = asked_whole(facts, program, modes, found)
        if isinstance(found, Shared):
            found = measured_below(facts, program, modes, found, can_ask=can_ask)
        decided.append(found)
    named = {origin for loader in program.loaders for origin in loader.origins}
    while True:
        kept_whole = {o for d in decided if isinstance(d, InFull) for o in d.loop.loaders} - program.training_loaders
        again = [_held_back(d, kept_whole, named, handed_out) if isinstance(d, Shared) else d for d in decided]
        if can_ask:
            again = [_whole_beside(facts, program, modes, d, beside) if d not in decided else d for d in again]
        if again == decided:
            break
        decided = again
    return [d for d in decided if isinstance(d, Shared)], [d for d in decided if isinstance(d, InFull)]


def _beside_home(facts: Facts, program: Program, loop: LoopFact) -> InFull:
    """A loop that also runs where nothing is prepared, or only the loader that an object holds."""
    inside = units_inside(facts, program)
    is_raw = False if program.hands_up else goes_over_raw(facts, program.loaders, inside, loop)
    if is_raw is False:
        return InFull(loop, "it also runs where the model is not prepared")
    at_times = ", at times" if is_raw is None else ""
    return InFull(loop, f"it goes over the loader as that was before prepare{at_times}", is_raw=is_raw)


def _whole_batches(facts: Facts, loops: Loops, program: Program, modes: Modes, whole: InFull) -> Shared | InFull:
    """An evaluation over a prepared loader; without gradients, where nothing else tells it from training."""
    found = gathered_first(facts, program, modes, whole)
    loop = whole.loop
    if isinstance(found, Shared) or modes.at(loop.node) is not Mode.UNKNOWN:
        return found
    if why := needed(facts, loops, loop):
        return InFull(loop, f"nothing tells it from training, and {why}")
    modes.turn_off(loop.node)
    again = decide(facts, program, modes, loop)
    if isinstance(again, InFull):
        again = gathered_first(facts, program, modes, again)
    return replace(again, without_gradients=True) if isinstance(again, Shared) else again


def _whole_beside(
    facts: Facts, program: Program, modes: Modes, held: Shared | InFull, beside: set[ast.AST]
) -> Shared | InFull:
    """A loop that a loader which is not prepared holds back, and that goes over one which is: of both, all batches."""
    return asked_whole(facts, program, modes, held) if isinstance(held, InFull) and held.loop.loaders & beside else held


def gathered_on_device(
    shared: list[Shared], in_full: list[InFull], hosted: Container[ast.AST]
) -> tuple[list[Shared], list[InFull]]:
    """Accelerate gathers only what is on the device."""
    kept = [s for s in shared if any(loader in hosted for loader in s.loop.loaders)]
    why = "its batches stay on the CPU, where Accelerate cannot gather them"
    return [s for s in shared if s not in kept], [*in_full, *(InFull(s.loop, why) for s in kept)]


def _beside_training(program: Program) -> set[ast.AST]:
    """The loaders that are trained on, and those that evaluation loops run over beside them: they are prepared."""
    found = set(program.training_loaders)
    while more := {o for loop in program.evaluation if loop.loaders & found for o in loop.loaders} - found:
        found |= more
    return found


def _held_back(
    shared: Shared, kept_whole: set[ast.AST], named: set[ast.AST], handed_out: set[ast.AST]
) -> Shared | InFull:
    """A loop over a loader that is not prepared runs in full: gathered, every sample would count N times."""
    if shared.whole:
        return shared  # of a loader that is not prepared it is given all batches, too
    if shared.loop.loaders & handed_out:
        return InFull(shared.loop, "its loader is also read in other ways, by next() or by code that is not seen")
    elsewhere = [origin for origin in shared.loop.loaders if origin not in named]
    if elsewhere:
        return InFull(
            shared.loop,
            f"it also runs over a loader that is made elsewhere (line {getattr(elsewhere[0], 'lineno', 0)})",
        )
    if shared.loop.loaders & kept_whole:
        return InFull(shared.loop, "its loader is also used where the batches cannot be shared out")
    return shared


def prepared_loaders(program: Program, in_full: list[InFull], handed_out: set[ast.AST]) -> tuple[Named, ...]:
    whole = {origin for decision in in_full for origin in decision.loop.loaders} | program.kept_whole
    return tuple(
        loader
        for loader in program.loaders
        if loader.origins & program.training_loaders or not loader.origins & (whole | handed_out)
    )


#: Library functions that only look at a loader or pass it through.
_HARMLESS = ("builtins.", "tqdm.", "itertools.")
#: Those that take its batches out, each process its own.
_TAKING = frozenset(f"builtins.{name}" for name in "next list tuple set sorted sum dict max min any all".split())


def handed_out_loaders(facts: Facts) -> set[ast.AST]:
    """Where loaders were made that are given to code outside the project, or read by hand with next()."""
    found: set[ast.AST] = set()
    for use in facts.calls:
        names = facts.called(use.node)
        if not names and not facts.targets(use.node):
            found |= taken(facts, use.node)  # `batches.next()`
        if any(name.startswith(_HARMLESS) and name not in _TAKING for name in names):
            continue
        if any(isinstance(value.unit, (Function, Class)) for value in facts.values(use.node.func)):
            continue  # the project's own: what becomes of the loader there is seen
        for argument in arguments(use.node):
            found |= facts.loaders(facts.values(argument))
    for module in facts.editable:  # `[y for x, y in loader]` is a loop, too
        for node in facts.tree_of(module).nodes:
            if isinstance(node, ast.comprehension):
                found |= facts.loaders(facts.values(node.iter))
            elif isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load):  # so is `[*loader]`
                found |= facts.loaders(of_role(facts.values(node.value), Role.LOADER, Role.ITERATOR))
    return found


def evaluated_in_full(
    facts: Facts,
    loops: Loops,
    program: Program,
    prepared: tuple[Named, ...],
    in_full: list[InFull],
    handed_out: set[ast.AST],
    *,
    can_ask: bool = True,
) -> list[Refusal]:
    """A loader that is trained on is prepared, so evaluating on it must be shared out, and training told from that."""
    modes = program.once(Modes, facts)
    return [
        *(
            Refusal(
                decision.loop.node,
                "MIG114",
                f"this loop evaluates on a loader that is also trained on, and cannot be shared out: {decision.why}",
                _to_evaluate(facts, program, modes, decision, can_ask=can_ask),
            )
            for decision in in_full
            if decision.loop.loaders & (program.training_loaders - program.partly_prepared) and not decision.is_raw
        ),
        *evaluated_beside(facts, program, prepared, in_full, handed_out),
        *_begun_too_early(facts, program, can_ask=can_ask),
        *_taken_by_hand(facts, loops, program),
    ]


def _to_evaluate(facts: Facts, program: Program, modes: Modes, decision: InFull, *, can_ask: bool) -> str:
    """The ways to evaluate on what is also trained on."""
    second = "make a second DataLoader over the same data for it"
    if not is_evaluating(facts, program, modes, decision.loop):
        return f"run it under torch.no_grad() in eval mode, or {second}"
    if not can_ask and isinstance(asked_whole(facts, program, modes, decision), Shared):
        return f"{second}, or convert with --target runtime, which hands each process whole batches here"
    return second


def _taken_by_hand(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """An evaluation that takes batches one by one from what may be a loader that is trained on: they would be shared.

    Inside of a training loop it is a part of a step.
    """
    modes = program.once(Modes, facts)
    evaluating, training = ({each.node for each in found} for found in (program.evaluation, program.training))
    for loop, _ in facts.loops:
        if loop in evaluating or loops.trains(loop) or not training.isdisjoint(facts.tree(loop).loops(loop)):
            continue
        run = [node for node in walk(loop).of(ast.Call) if _runs_model(facts, program, node)]
        if not run or not (all(without_gradients(facts, c) for c in run) or modes.at(loop) is not Mode.UNKNOWN):
            continue
        for call, made in loops.takes(loop).items():
            if made & program.training_loaders:
                yield Refusal(
                    loop,
                    "MIG114",
                    f"this loop evaluates on batches that are taken one by one (line {call.lineno}), and the loader "
                    "may be one that is trained on: each process would see its share",
                    "loop over a DataLoader of its own here: for batch in loader",
                )
                break


def _runs_model(facts: Facts, program: Program, call: ast.Call) -> bool:
    return bool(origins(facts.values(call.func), Role.MODEL) & program.model_origins)


def _begun_too_early(facts: Facts, program: Program, *, can_ask: bool) -> Iterator[Refusal]:
    """The iterator of a training pass that is made while a validation's mode still holds: the rows would be shared.

    Where it can be said of it that it trains, it is.
    """
    said = begun_as_training(facts, program) if can_ask else {}
    for _, call in begun_early(facts, program):
        if call not in said:
            yield Refusal(
                call,
                "MIG114",
                "the pass over the training data begins here, where the model may still be in eval mode, and is "
                "taken for an evaluation: processes would share the rows of each batch",
                "call model.train() before this",
            )
            return
