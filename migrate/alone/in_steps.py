"""Sums over the processes that each step of a training takes to show them: `shown = reduce_mean(loss.item())`.

They are not a part of the loss, and nothing else joins them. They stay where only steps of a training come to them, and
all of them do: in an evaluation each process has the whole already, and under a condition some may not come. One that
is the same on all processes, `if step % log_every == 0:`, is none of these, and an evaluation need not ask a function
that would only give it back what it has (`alone/handing_back.py`).
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.calls import SUMS
from migrate.alone.handing_back import handed_back, is_evaluated
from migrate.alone.quantities import RANKS
from migrate.analysis.syntax import LOOPS
from migrate.analysis.units import Function
from migrate.programs.processes.asked import sameness_of
from migrate.programs.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        if (above := self._above(statement)) in self._joining.loops:
            return self._joining.loops[above] is True and isinstance(statement, (ast.Assign, ast.Expr))
        unit = facts.unit(call)
        if depth == 0 or not isinstance(unit, Function) or not facts.callers_known(unit):
            return False
        if any(isinstance(node, LOOPS) for node in tree.up(call) if facts.unit(node) is unit):
            return False
        callers = [each.node for each in facts.callers(unit) if each.node not in self._idle(unit)]
        assigned = (isinstance(facts.tree(each).statement(each), ast.Assign) for each in callers)
        return bool(callers) and all(assigned) and all(self._is_step(each, depth - 1) for each in callers)

    def _idle(self, unit: Function) -> dict[ast.Call, ast.expr]:
        """The calls by which evaluations ask for a mean of what they have in full, with what they ask it of."""
        world, loops = self._world, self._joining.loops
        calls = (call.node for call in world.facts.callers(unit) if is_evaluated(world, loops, call.node))
        return {call: given for call in calls if (given := handed_back(world, call)) is not None}

    def idle(self, joined: Iterable[ast.Call]) -> dict[ast.Call, ast.expr]:
        """These calls, of the functions in which some sums stay."""
        units = {self._world.facts.unit(call) for call in joined}
        return {k: given for unit in units if isinstance(unit, Function) for k, given in self._idle(unit).items()}

    def _above(self, statement: ast.stmt) -> ast.AST:
        """What a statement stands in, past tests that come out the same wherever a process comes to it."""
        tree = self._world.facts.tree(statement)
        tests: list[ast.expr] = []
        for above in tree.up(statement):
            if not isinstance(above, ast.If):
                return above if not tests or self._is_common(statement, tests, above) else tests[-1]
            tests.append(above.test)
        return tree.parents[statement]

    def _is_common(self, statement: ast.stmt, tests: list[ast.expr], loop: ast.AST) -> bool:
        """Whether all processes come to a statement of a loop that trains, past some tests, equally often."""
        if (found := self._joining.training.get(loop)) is None:
            return False
        asked = (node for test in tests for node in ast.walk(test) if isinstance(node, ast.expr))
        if any(self._world.quantity(node) in RANKS for node in asked):
            return False
        sameness = sameness_of(self._world.facts, Program((found,)), trusting=False)
        return all(map(sameness.same, tests)) and sameness.alike(statement, deep=True)
