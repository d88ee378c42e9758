"""Figures that every process opens, since more than drawing stands between opening and saving: all close them again."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.programs.values.outputs import names_in_targets

if TYPE_CHECKING:
    from migrate.analysis.units import Unit
    from migrate.programs.output.voice import Voice


class Figures:
    """Questions about the figures that functions open."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._facts = voice.conversion.facts
        self._open: dict[Unit, list[ast.Assign]] = {}

    def closes_for_all(self, call: ast.Call) -> bool:
        """Whether a call is `plt.close()` or the like, and all processes have the figure."""
        if not self._facts.called(call) & output.CLOSES:
            return False
        unit = self._facts.unit(call)
        opened = self._opened(unit)
        given = next(iter(call.args), None)
        if not isinstance(given, ast.Name):
            return bool(opened)
        return any(
            isinstance(node, ast.Assign)
            and given.id in names_in_targets(node)
            and (node in opened or not self._voice.outputs.makes_figure(node))
            for node in self._facts.own(unit)
        )

    def _opened(self, unit: Unit) -> list[ast.Assign]:
        """The statements of a unit that open a figure on all processes."""
        if unit not in self._open:
            self._open[unit] = []  # while it is being asked
            makes = self._voice.outputs.makes_figure
            found = [node for node in self._facts.own(unit) if isinstance(node, ast.Assign) and makes(node)]
            self._open[unit] = [statement for statement in found if self._stays(statement)]
        return self._open[unit]

    def _stays(self, statement: ast.Assign) -> bool:
        """Whether more than drawing comes before the last use of a figure, so that it is not opened under a guard."""
        voice = self._voice
        block = self._facts.tree(statement).block(statement)
        below = block[block.index(statement) + 1 :]
        drawing = itertools.takewhile(
            lambda s: voice.outputs.makes_figure(s) or (voice.only_outputs(s) and not voice.is_collective(s)), below
        )
        return not voice.is_private(statement, list(drawing))
