"""What a program does by hand around its steps, mixed precision and gradient accumulation, and what becomes of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.units import Module
from migrate.programs.amp import precision
from migrate.programs.device.choices import choices
from migrate.programs.marker import ACCELERATOR
from migrate.programs.program import Refusal
from migrate.programs.reach.outsiders import units_of
from migrate.programs.schedule.schedulers import steps_of
from migrate.programs.stages import NoPlace
from migrate.programs.training import windows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.argument import Argument
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import Loops
    from migrate.programs.prepare.placement import Placement
    from migrate.programs.program import Program


@dataclass(frozen=True, slots=True)
class ByHand:
    """The decisions about both."""

    mixed: precision.Mixed
    accumulated: windows.Accumulated

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What they ask of the accelerator's constructor."""
        return (*self.mixed.arguments, *self.accumulated.arguments)

    def check(self, facts: Facts, program: Program, placement: Placement) -> None:
        """What the constructor is given means the same where the accelerator is made.

        Raises:
            NoPlace: that is in another function than the home, which has names of its own.
        """
        unit, home = facts.unit(placement.accelerator.statement), program.home
        if unit is home or not self.arguments or home is None:
            return
        needed = {name for argument in self.arguments for name in argument.needs if "." not in name} - {"self"}
        local = {binding.target for binding in facts.bindings_in(home)} if not isinstance(home, Module) else set()
        local |= set(getattr(home, "parameter_names", ())) | set(getattr(unit, "parameter_names", ()))
        local |= {binding.target for binding in facts.bindings_in(unit)} if not isinstance(unit, Module) else set()
        if apart := {name for name in needed & local if not _is_same(facts, name, home, unit)}:
            names = ", ".join(sorted(apart))
            why = f"{names} is not at hand where the accelerator is made"
            raise NoPlace(Refusal(placement.accelerator.statement, "MIG100", why, f"make {names} an attribute"))

    def kept(self, error: NoPlace) -> ByHand:
        """The decisions where the accelerator cannot be told of them.

        Raises:
            NoPlace: that was not the trouble.
        """
        if not self.arguments or self.mixed.was_apex:
            raise error
        why = error.refusal.why
        return ByHand(self.mixed.by_hand(why), self.accumulated.by_hand(why))

    def beside(self, facts: Facts, loops: Loops, prepared: Collection[Named]) -> ByHand:
        """The decisions beside prepared schedulers, which wait where the accelerator leaves a step out.

        The program's own go on there, and so do those that are prepared where the program goes on by hand.
        """
        mixed = self._mixed_beside(prepared)
        accumulated = _beside_scaling(mixed, self._accumulated_beside(facts, loops, prepared))
        is_same = mixed is self.mixed and accumulated is self.accumulated
        return self if is_same else ByHand(mixed, accumulated)

    def _mixed_beside(self, prepared: Collection[Named]) -> precision.Mixed:
        if not prepared or not self.mixed.arguments:
            return self.mixed
        names = " and ".join(named.target for named in prepared)
        if self.mixed.was_apex:
            told = (self.mixed.uses[0][0], f"{names} waits for a step that overflows; in the original it goes on")
            return replace(self.mixed, told=(*self.mixed.told, told))
        why = f"the accelerator's scaler would make {names} wait for a step that overflows"
        return self.mixed.by_hand(f"{why}, and in the original it goes on")

    def _accumulated_beside(self, facts: Facts, loops: Loops, prepared: Collection[Named]) -> windows.Accumulated:
        """Windows stay where a scheduler is stepped within them, not only at their ends."""
        for named in prepared:
            steps = list(steps_of(facts, named.origins))
            if any(window.has_within(facts, loops, step) for window in self.accumulated.windows for step in steps):
                why = f"{named.target} is stepped in every micro-step, where the accelerator would make it wait"
                return self.accumulated.by_hand(why)
        return self.accumulated


def _is_same(facts: Facts, name: str, *units: Unit) -> bool:
    """Whether a name has one object in two functions: `args`, which one passes to the other."""
    found = []
    for unit in units:
        bound = [value for binding in facts.bindings_in(unit) if binding.target == name for value in binding.values]
        found.append({v.origin for v in (*bound, *getattr(unit, "parameters", {}).get(name, ()))})
    return found[0] == found[1] and len(found[0]) == 1 and None not in found[0]


def unscaled_twice(
    facts: Facts, loops: Loops, program: Program, mixed: precision.Mixed, package: str
) -> Iterator[Refusal]:
    """With Accelerate, gradients are unscaled once for each step, and an error says so if they are unscaled again."""
    if package != "accelerate" or not mixed.was_apex:
        return
    for unit in units_of(facts, program):
        for node in facts.own(unit):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{ACCELERATOR}.unscale_gradients":
                yield _twice(node, "gradients are read between the backward and the step")
                return
    if windows.clips_early(facts, loops, program):
        yield _twice(program.training[0].node, "gradients are clipped while they are still accumulated")


def _twice(node: ast.AST, why: str) -> Refusal:
    out = "clip and read gradients only where a step is made, or use --target runtime"
    return Refusal(node, "MIG106", f"{why}, which Accelerate refuses with fp16", out)


def decide(facts: Facts, loops: Loops, program: Program) -> ByHand:
    """What becomes of the scalers, contexts and windows of a program."""
    chosen = choices(facts, program.home) if program.home is not None else ()
    mixed = precision.decide(facts, loops, program, frozenset(choice.target for choice in chosen))
    accumulated = windows.accumulation(facts, loops, program)
    if mixed.was_apex and any(windows.clips_outside(facts, window) for window in accumulated.windows):
        accumulated = accumulated.by_hand(
            "gradients are clipped after every backward, not only where they are complete"
        )
    return ByHand(mixed, _beside_scaling(mixed, accumulated))


def _beside_scaling(mixed: precision.Mixed, accumulated: windows.Accumulated) -> windows.Accumulated:
    """The program's own scaler unscales gradients and goes on in each call: it must be called where a window ends."""
    return accumulated.by_hand("the program goes on scaling its losses by hand") if mixed.kept else accumulated
