"""Training loops in which no optimizer steps: they stay as they are, with their data, and why."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.units import Function
from migrate.programs.reach.uncalled import called, is_uncalled
from migrate.programs.training.updates import How

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.home.homes import Home
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program


def reason(loops: Loops, training: Sequence[LoopFact]) -> str:
    """What changes the parameters in loops in which no optimizer is seen to step."""
    found = {update.how.value for loop in training for update in loops.stepped(loop)}
    if found:
        return f"no optimizer steps in this loop: the parameters are changed by {min(found)}"
    return "no optimizer steps in this loop, as far as the analysis sees"


def way_out(facts: Facts, training: Sequence[LoopFact]) -> str:
    """What to do about loops in which no optimizer is seen to step."""
    if (unit := next((loop.unit for loop in training if is_uncalled(facts, loop.unit)), None)) is not None:
        return f"nothing that was read calls {called(unit)}: name the file that hands the optimizer to it, too"
    return "train with a torch.optim optimizer that has a name in the same program, or convert by hand"


def by_hand(loops: Loops, training: Sequence[LoopFact]) -> LoopFact | None:
    """A loop that changes parameters otherwise, on the data of others: nobody would average its gradients."""
    for loop in training:
        found = {update.how for update in loops.stepped(loop)}
        if found and How.OPTIMIZER not in found:
            return loop
    return None


def without_theirs(facts: Facts, loops: Loops, program: Program, home: Home) -> list[Named]:
    """The loaders with a name at a program's home, and a use; not those prepared elsewhere, or of such loops."""
    named = home.named(facts, Role.LOADER, None)
    if theirs := _data(loops, program.training):
        named = home.named(facts, Role.LOADER, {origin for each in named for origin in each.origins} - theirs)
    apart = {origin for each in program.loaders for origin in each.origins}
    return [each for each in named if each.origins.isdisjoint(apart) and not _is_idle(facts, program, each)]


def _is_idle(facts: Facts, program: Program, loader: Named) -> bool:
    """Whether nothing reads a loader: `train_loader, _ = loaders()`."""
    home = program.home
    if not isinstance(home, Function) or not loader.target.isidentifier() or not loader.statements:
        return False
    nodes = (node for unit in (home, *facts.nested(home)) for node in facts.own(unit))
    return not any(isinstance(n, ast.Name) and n.id == loader.target and isinstance(n.ctx, ast.Load) for n in nodes)


def _data(loops: Loops, training: Sequence[LoopFact]) -> set[ast.AST]:
    """Where the loaders were made that only loops without an optimizer train on, beside those of a program."""
    others = (loop for loop in loops.training if loop not in training and not loops.trained_by(loop))
    mine = {origin for loop in training for origin in loop.loaders}
    return {origin for loop in others for origin in loop.loaders} - mine
