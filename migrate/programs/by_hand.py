"""What a program does by hand around its steps, mixed precision and gradient accumulation, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.programs import precision, windows

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.placement import NoPlace
    from migrate.programs.program import Program
    from migrate.programs.setup import Argument


@dataclass(frozen=True, slots=True)
class ByHand:
    """The decisions about both."""

    mixed: precision.Mixed
    accumulated: windows.Accumulated

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What they ask of the accelerator's constructor."""
        return (*self.mixed.arguments, *self.accumulated.arguments)

    def kept(self, error: NoPlace) -> ByHand:
        """The decisions where the accelerator cannot be told of them.

        Raises:
            NoPlace: that was not the trouble.
        """
        if not self.arguments:
            raise error
        why = error.refusal.why
        return ByHand(self.mixed.by_hand(why), self.accumulated.by_hand(why))


def decide(facts: Facts, loops: Loops, program: Program) -> ByHand:
    """What becomes of the scalers, contexts and windows of a program."""
    return ByHand(precision.decide(facts, loops, program), windows.accumulation(facts, loops, program))
