"""What has been asked of the programs: all who ask share the answers, which are long to find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.processes.sameness import Sameness

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.program import Program


class _Asked:
    """The answers for each program."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[tuple[object, ...], Sameness] = {}

    def of(self, program: Program, *, trusting: bool, drawing: bool) -> Sameness:
        """What is known of a program as it is now; its models may yet get other names."""
        key = (program.models, program.home, program.start, program.module, trusting, drawing)
        if key not in self._known:
            self._known[key] = Sameness(self._facts, program, trusting=trusting, drawing=drawing)
        return self._known[key]


def sameness_of(facts: Facts, program: Program, *, trusting: bool, drawing: bool = False) -> Sameness:
    """The answers for a program, which are kept."""
    return facts.once(_Asked).of(program, trusting=trusting, drawing=drawing)
