"""Questions for the process that stay as they are: in code that scripts run, too, in which nothing trains.

`if is_main_process():` in what `train.py` and `validate.py` both use: the one has an accelerator, the other has none. A
function of the project that asks torch.distributed where processes have been started, and takes itself for the only one
otherwise, is right in both.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.entrances import entered_from
from migrate.analysis.roles import Role, roles
from migrate.analysis.units import Function
from migrate.programs.loops import Loops
from migrate.programs.prepare.scripts import is_imported
from migrate.programs.reach.callees import reached
from migrate.programs.reach.unused import Unused

if TYPE_CHECKING:
    from migrate.alone.world import World
    from migrate.analysis.units import Module, Unit

_PREPARED = frozenset({Role.MODEL, Role.OPTIMIZER, Role.LOADER})
_STARTED = "torch.distributed.is_initialized"
_DISTRIBUTED = "torch.distributed"


class Questions:
    """Those of one project."""

    def __init__(self, world: World) -> None:
        self._world = world

    def stays(self, test: ast.AST) -> bool:
        """Whether a question stays."""
        return test in self._staying

    def is_asked(self, statement: ast.stmt) -> bool:
        """Whether a function answers one of these, and so stays as it is."""
        return any(unit.node is statement for asked in self._staying.values() for unit in asked)

    @cached_property
    def _staying(self) -> dict[ast.AST, set[Function]]:
        """The questions, with the functions that answer them."""
        facts, modules = self._world.facts, self._world.modules
        found: dict[ast.AST, set[Function]] = {}
        for use in facts.calls_anywhere:
            if use.unit.module in modules and isinstance(use.unit, Function) and len(facts.targets(use.node)) == 1:
                is_question = self._world.process(use.node) is not None and not self._holds_model(use.unit)
                is_question = is_question and self._runs_elsewhere(use.unit)
                if is_question or facts.once(Unused).holds(use.node):
                    if (asked := self._asked(facts.targets(use.node)[0])) is not None:
                        found[use.node] = asked
        return found

    def _runs_elsewhere(self, unit: Unit) -> bool:
        """Whether a script in which nothing trains leads to some code."""
        above = entered_from(self._world.facts, unit) - self._training
        return any(not is_imported(self._world.facts, module) for module in above)

    def _holds_model(self, unit: Unit) -> bool:
        """Whether some code has to do with what is prepared, which all processes must enter."""
        facts = self._world.facts
        return any(
            bool(roles(facts.values(node)) & _PREPARED)
            for node in facts.own(unit)
            if isinstance(node, (ast.Name, ast.Attribute))
        )

    @cached_property
    def _training(self) -> frozenset[Module]:
        facts = self._world.facts
        return frozenset(m for loop in Loops(facts).training for m in entered_from(facts, loop.unit))

    def _asked(self, unit: Function) -> set[Function] | None:
        """A function and those that it calls, where they ask torch.distributed, started or not, and nothing else."""
        facts = self._world.facts
        found = {each for each in reached(facts, [unit]) if isinstance(each, Function)}
        calls = [node for each in found for node in facts.own(each) if isinstance(node, ast.Call)]
        names = {name for call in calls for name in facts.called(call)}
        is_library = all(facts.targets(c) or facts.called(c) for c in calls)
        if _STARTED not in names or not is_library or not all(n.startswith(_DISTRIBUTED) for n in names):
            return None
        return found if all(self._is_known(node) for each in found for node in facts.own(each)) else None

    def _is_known(self, node: ast.AST) -> bool:
        """Whether a name is a library's, or a function that is called."""
        if not isinstance(node, ast.Name):
            return True
        parent = self._world.facts.tree(node).parents[node]
        is_called = isinstance(parent, ast.Call) and parent.func is node and bool(self._world.facts.targets(parent))
        return is_called or any(name.startswith("torch") for name in self._world.facts.names(node))
