"""Training loops in methods that nothing calls, beside others of the same object that run: `train_old()`.

They are left as they are, and told: what they would need is no reason to leave what runs. A method that may be called
by its name (`getattr(trainer, mode)()`), whose name stands anywhere else, or that is decorated, is none of them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.units import Class, Function
from migrate.programs.reach.outsiders import importing
from migrate.programs.reach.tests import is_run_by_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact, Loops


def idle(facts: Facts, loops: Loops, found: Sequence[LoopFact]) -> Iterator[LoopFact]:
    """Of training loops those that nothing runs and that have a place of their own, beside one that is run.

    One that steps the optimizer of others over a known loader is converted with them.
    """
    unrun = [loop for loop in found if facts.once(_Unrun).holds(loop.unit)]
    others = [loop for loop in found if isinstance(loop.unit, Function) and facts.callers(loop.unit)]
    for loop in unrun:
        beside = [other for other in others if _is_of_one_object(loop.unit, other.unit)]
        mine = loops.trained_by(loop)
        joined = any(mine & loops.trained_by(other) for other in beside)
        if beside and not (joined and loop.loaders | loop.whole):
            yield loop


def _is_of_one_object(one: Unit, other: Unit) -> bool:
    """Whether two units are methods of the same object."""
    owners = [unit.owner for unit in (one, other) if isinstance(unit, Function) and unit.owner is not None]
    return len(owners) == 2 and owners[0].is_related(owners[1])


class _Unrun:
    """The methods that nothing runs."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[Unit, bool] = {}

    def holds(self, unit: Unit) -> bool:
        """Whether a unit is a method that nothing runs, as far as names tell."""
        if unit not in self._known:
            self._known[unit] = False  # what only calls itself
            self._known[unit] = self._is_unrun(unit)
        return self._known[unit]

    def _is_unrun(self, unit: Unit) -> bool:
        if not isinstance(unit, Function) or unit.owner is None or unit.owner.library_bases() - {"builtins.object"}:
            return False
        is_decorated = not isinstance(unit.node, ast.Lambda) and bool(unit.node.decorator_list)
        if unit.name.startswith("__") or is_decorated or is_run_by_tests(unit):
            return False
        return not self._facts.callers(unit) and not self._is_named(unit) and importing(self._facts, unit) is None

    def _is_named(self, unit: Function) -> bool:
        """Whether a method may be called by a name that is written somewhere, or put together."""
        for module in self._facts.modules:
            for node in self._facts.tree_of(module).nodes:
                if isinstance(node, ast.Attribute) and node.attr == unit.name:
                    return True
                if isinstance(node, ast.Constant) and node.value == unit.name:
                    return True
                if isinstance(node, ast.Call) and self._is_asked_for(node, unit):
                    return True
        return False

    def _is_asked_for(self, call: ast.Call, unit: Function) -> bool:
        """`getattr(trainer, name)`, where the name is not written out."""
        if "builtins.getattr" not in self._facts.called(call) or len(call.args) < 2:
            return False
        assert unit.owner is not None
        given = self._facts.values(call.args[0])
        is_other = bool(given) and all(
            value.role is Role.MODULE or (isinstance(value.unit, Class) and not value.unit.is_related(unit.owner))
            for value in given
        )
        return not isinstance(call.args[1], ast.Constant) and not is_other
