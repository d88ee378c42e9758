"""Methods by which an object adds up over all processes what it has counted: they stay where a training calls them.

    def synchronize(self):                           def synchronize(self, accelerator):
        t = torch.tensor([self.count, self.total])       t = torch.tensor([self.count, self.total], ...)
        dist.all_reduce(t)                      ->       t = accelerator.reduce(t, reduction="sum")
        self.count, self.total = t.tolist()              self.count, self.total = t.tolist()

After an evaluation they go: that is exact on each process already, and would be counted once for each.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.calls import BARRIERS, SUMS
from migrate.analysis.syntax import LOOPS, is_docstring, reads, walk
from migrate.analysis.units import Function
from migrate.programs.loops import Loops

if TYPE_CHECKING:
    from migrate.alone.world import World
    from migrate.analysis.units import Call
    from migrate.programs.loops import LoopFact

_MOST = 20  # methods that only hand on


class Joining:
    """The methods of a project that join what their object holds, and where they are called."""

    def __init__(self, world: World, *, is_wanted: bool) -> None:
        self._world = world
        self.is_wanted = is_wanted

    @cached_property
    def calls(self) -> frozenset[ast.Call]:
        """The sums that stay."""
        return frozenset(call for call, _ in self._found)

    @cached_property
    def _found(self) -> tuple[tuple[ast.Call, frozenset[ast.stmt]], ...]:
        """Each of them, with the statements that ask for it after an evaluation."""
        facts = self._world.facts
        uses = [use for use in facts.calls_anywhere if facts.called(use.node) & SUMS and self.is_wanted]
        mine = [use for use in uses if use.unit.module in self._world.modules]
        methods = ((use.node, use.unit) for use in mine if isinstance(use.unit, Function))
        found = ((call, self._asked(method)) for call, method in methods if _joins_itself(method, call))
        return tuple((call, asked) for call, asked in found if asked is not None)

    def is_idle(self, statement: ast.stmt) -> bool:
        """Whether a statement joins what is exact already, or waits before a sum, which does so itself."""
        if any(statement in idle for _, idle in self._found):
            return True
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not self._world.facts.called(call) & BARRIERS:
            return False
        unit = self._world.facts.unit(statement)
        return any(self._world.facts.unit(kept) is unit for kept in self.calls)

    def _asked(self, method: Function) -> frozenset[ast.stmt] | None:
        """Where a method is called after an evaluation; None: not after a training, or nobody knows after what."""
        calls = self._sites(method)
        if calls is None:
            return None
        after = {call.node: self._is_after_training(call.node) for call in calls}
        if None in after.values() or True not in after.values():
            return None
        idle = [call for call, trains in after.items() if not trains]
        if any(self._world.facts.module(call) not in self._world.modules for call in idle):
            return None
        return frozenset(self._world.facts.tree(call).statement(call) for call in idle)

    def _sites(self, method: Function) -> list[Call] | None:
        """The calls of a method, and of those that only hand on to it; None: one is not seen, or gives something."""
        facts, found, waiting, met = self._world.facts, [], [method], {method}
        while waiting:
            unit = waiting.pop()
            if not facts.callers_known(unit) or len(met) > _MOST:
                return None
            for call in facts.callers(unit):
                if not isinstance(facts.tree(call.node).parents[call.node], ast.Expr):
                    return None
                if not isinstance(call.caller, Function) or not _only_hands_on(call.caller):
                    found.append(call)
                elif call.caller not in met:
                    met.add(call.caller)
                    waiting.append(call.caller)
        return found

    def _is_after_training(self, call: ast.Call) -> bool | None:
        """Whether the loop that fed an object, above the call that joins it, is one that trains; None: unclear."""
        if not isinstance(call.func, ast.Attribute):
            return None
        tree, name = self._world.facts.tree(call), ast.unparse(call.func.value)
        statement: ast.stmt = tree.statement(call)
        while isinstance(above := tree.parents[statement], ast.If) and not any(n in self.loops for n in walk(above)):
            statement = above
        block = tree.block(statement)
        for before in reversed(block[: block.index(statement)]):
            if isinstance(before, (ast.Expr, ast.Assign)) and _mentions(before, name):
                return None  # read, or made, before it is joined
            loops = [n for n in walk(before) if n in self.loops and _mentions(n, name)]
            if loops:
                kinds = {self.loops[loop] for loop in loops}
                return kinds.pop() if len(kinds) == 1 else None
            if any(isinstance(n, LOOPS) and _mentions(n, name) for n in walk(before)):
                return None
        return None

    @cached_property
    def loops(self) -> dict[ast.AST, bool | None]:
        """The loops that train, those that evaluate, and those that do both: None."""
        found: dict[ast.AST, bool | None] = dict.fromkeys((loop.node for loop in self._loops.evaluation), False)
        return found | {node: self._only_trains(loop) or None for node, loop in self.training.items()}

    @cached_property
    def training(self) -> dict[ast.AST, LoopFact]:
        """What is known of the loops that train."""
        return {loop.node: loop for loop in self._loops.training}

    @cached_property
    def _loops(self) -> Loops:
        return Loops(self._world.facts)

    def _only_trains(self, loop: LoopFact) -> bool:
        """Whether a loader deals a loop its batches, and no test decides that it trains."""
        tree, inside = self._world.facts.tree(loop.node), frozenset(walk(loop.node))
        above = {node for call in loop.backwards if call in inside for node in tree.up(call)} & inside
        return bool(loop.loaders) and not any(isinstance(node, ast.If) and not node.orelse for node in above)


def _joins_itself(unit: Function, call: ast.Call) -> bool:
    """Whether a method sums up its object's numbers, keeps what comes of it there, and gives nothing."""
    if unit.owner is None or len(unit.parameter_names) != 1 or not call.args or not isinstance(call.args[0], ast.Name):
        return False
    own, name = unit.parameter_names[0], call.args[0].id
    nodes = list(walk(unit.node))
    made = [n for n in nodes if isinstance(n, ast.Assign) and name in _targets(n) and n.lineno < call.lineno]
    kept = [n for n in nodes if isinstance(n, ast.Assign) and n.lineno > call.lineno and own in _targets(n)]
    gives = any(isinstance(n, ast.Return) and n.value is not None for n in nodes)
    return len(made) == 1 and own in reads(made[0].value) and bool(kept) and not gives


def _targets(statement: ast.Assign) -> set[str]:
    """The names that are given something, and those of which an attribute is."""
    return {n.id for target in statement.targets for n in walk(target) if isinstance(n, ast.Name)}


def _only_hands_on(unit: Function) -> bool:
    """`for meter in self.meters.values(): meter.synchronize()`, and nothing else."""
    return unit.owner is not None and all(map(_is_handing, unit.body))


def _is_handing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.For):
        return all(map(_is_handing, statement.body))
    return is_docstring(statement) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call))


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == name for n in walk(node))
