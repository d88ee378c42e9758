"""Sums over the processes that each step of a training takes to show them: `shown = reduce_mean(loss.item())`.

They are not a part of the loss, and nothing else joins them. They stay where only steps of a training come to them, and
all of them do: in an evaluation each process has the whole already, and under a condition some may not come.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.calls import SUMS
from migrate.analysis.syntax import LOOPS
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from migrate.alone.joining import Joining
    from migrate.alone.world import World

_DEEPEST = 3  # calls between a step and the sum


class InSteps:
    """The sums of a project that steps of its trainings come to, and nothing else."""

    def __init__(self, world: World, joining: Joining) -> None:
        self._world = world
        self._joining = joining

    @cached_property
    def calls(self) -> frozenset[ast.Call]:
        """These sums."""
        facts, modules = self._world.facts, self._world.modules
        uses = [use for use in facts.calls_anywhere if facts.called(use.node) & SUMS and self._joining.is_wanted]
        return frozenset(
            use.node
            for use in uses
            if use.unit.module in modules and self._is_named(use.node) and self._is_step(use.node)
        )

    def _is_named(self, call: ast.Call) -> bool:
        """Whether a statement sums up what has a name of its own: gradients have none, and are averaged anyway."""
        is_plain = bool(call.args) and isinstance(call.args[0], ast.Name)
        return is_plain and isinstance(self._world.facts.tree(call).parents[call], ast.Expr)

    def _is_step(self, call: ast.Call, depth: int = _DEEPEST) -> bool:
        """Whether every way to a call is a statement of a loop that trains, and nothing else."""
        facts = self._world.facts
        tree = facts.tree(call)
        statement = tree.statement(call)
        if (above := tree.parents[statement]) in self._joining.loops:
            return self._joining.loops[above] is True and isinstance(statement, (ast.Assign, ast.Expr))
        unit = facts.unit(call)
        if depth == 0 or not isinstance(unit, Function) or not facts.callers_known(unit):
            return False
        if any(isinstance(node, LOOPS) for node in tree.up(call) if facts.unit(node) is unit):
            return False
        callers = facts.callers(unit)
        assigned = (isinstance(facts.tree(each.node).statement(each.node), ast.Assign) for each in callers)
        return all(assigned) and all(self._is_step(each.node, depth - 1) for each in callers)
