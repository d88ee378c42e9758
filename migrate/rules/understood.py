"""What is told of each program beside its findings, as far as somebody will read it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.options import Mode
from migrate.report.model import Summary
from migrate.rules.summary import Narrator, tied

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.options import Options
    from migrate.programs.conversion import Conversion
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program
    from migrate.rules.chart import Cartographer


class Understood:
    """The summaries of one run: a paragraph in the modes that show it, a map where a report is wanted."""

    def __init__(self, facts: Facts, loops: Loops, options: Options) -> None:
        self._facts = facts
        self._narrator = Narrator(facts, loops)
        self._cartographer = _cartographer(facts, loops) if options.report else None
        self._speaks = options.report or options.mode is not Mode.CHECK  # a diff, too: it may be written afterwards

    def of(self, program: Program, conversion: Conversion | None) -> Summary:
        """The summary of a program; `conversion` is None where it stays as it is."""
        if not self._speaks:
            return Summary(program.module.path, "", tied(self._facts, program, conversion))
        told = self._narrator.told(program, conversion)
        return replace(told, map=self._cartographer.drawn(program)) if self._cartographer else told


def _cartographer(facts: Facts, loops: Loops) -> Cartographer:
    from migrate.rules.chart import Cartographer  # few runs draw maps

    return Cartographer(facts, loops)
