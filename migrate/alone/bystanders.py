"""Scripts that start processes of their own and train nothing, beside programs that train: they stay as they are.

`eval_knn.py` gathers features of all processes, and shares a file with `train.py`. Nothing of it runs where the other
trains, so it keeps its processes, and the functions that it uses stay, too. Those of them that only find a process its
place are no longer called by the programs; what silences the other processes' prints goes on doing so there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.alone.calls import BARRIERS, GATHERS, GROUPS, SAME
from migrate.alone.world import WRAPPERS
from migrate.analysis.entrances import entered_from
from migrate.analysis.known import distributed
from migrate.analysis.syntax import FUNCTIONS
from migrate.analysis.units import Function
from migrate.programs.loops import Loops
from migrate.programs.prepare.scripts import is_imported
from migrate.programs.program import Refusal
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module

_STARTED = "torch.distributed.is_initialized"
#: What would be done a second time, or by no process, in a program that an accelerator runs.
_DISTRIBUTING = SAME | GATHERS | BARRIERS | GROUPS | WRAPPERS | distributed.SAMPLERS | distributed.LAUNCHERS


@dataclass(frozen=True, slots=True)
class Bystanders:
    """Such scripts, and the functions of other files that they use."""

    modules: frozenset[Module] = frozenset()
    functions: frozenset[Function] = frozenset()

    def holds(self, facts: Facts, node: ast.AST) -> bool:
        """Whether code stands in what stays, or is that."""
        if isinstance(node, FUNCTIONS):
            return any(unit.node is node for unit in self.functions) or self.holds(
                facts, facts.tree(node).parents[node]
            )
        unit = facts.unit(node)
        while isinstance(unit, Function) and unit not in self.functions and unit.parent is not None:
            unit = unit.parent
        return unit in self.functions

    def obstacles(self, facts: Facts, idle: Collection[ast.AST]) -> Iterator[Refusal]:
        """What programs use, too, and what does not do there what it does in these scripts."""
        for unit in sorted(self.functions, key=lambda unit: (unit.module.path, unit.node.lineno)):
            if unit.node in idle or not entered_from(facts, unit) - self.modules:
                continue
            for call in (node for node in facts.own(unit) if isinstance(node, ast.Call)):
                names = facts.called(call)
                is_asking = any(name.startswith("torch.distributed.") for name in names)
                if names & _DISTRIBUTING or (is_asking and not self._asks_whether_started(facts, unit)):
                    others = ", ".join(sorted(module.path for module in self.modules))
                    why = f"{unit.name}() is run by several processes of its own in {others}, too"
                    yield Refusal(call, "MIG113", why, f"give these a function of their own, a copy of {unit.name}()")
                    break

    def _asks_whether_started(self, facts: Facts, unit: Function) -> bool:
        units = reached(facts, [unit])
        calls = (node for each in units for node in facts.own(each) if isinstance(node, ast.Call))
        return any(_STARTED in facts.called(call) for call in calls)


def bystanders(facts: Facts, modules: tuple[Module, ...], found: Iterable[Refusal]) -> Bystanders | None:
    """The scripts among some files that may stay, if one of them holds what is in the way."""
    training = _training(facts)
    beside = _apart(facts, {m for m in modules if m not in training})
    if not beside or not any(facts.module(refusal.node) in beside for refusal in found):
        return None
    shared = frozenset(_imported(facts, beside)) & (frozenset(modules) - beside)
    units = reached(facts, {*beside, *(unit for unit in facts.functions if unit.module in beside)})
    named = _named(facts, beside)
    used = {unit for unit in facts.functions if unit.module in shared and (unit in units or unit.name in named)}
    more = {unit for unit in reached(facts, used) if isinstance(unit, Function) and unit.module in shared}
    return Bystanders(beside, frozenset(unit.original for unit in used | more))


def training_with(facts: Facts, modules: tuple[Module, ...]) -> tuple[Module, ...]:
    """Some files without the scripts that train nothing, where others train: `inference.ipynb` beside `train.py`."""
    training = _training(facts)
    if training.isdisjoint(modules):
        return modules
    return tuple(module for module in modules if module in training or is_imported(facts, module))


def _training(facts: Facts) -> set[Module]:
    return {module for loop in Loops(facts).training for module in entered_from(facts, loop.unit)}


def _imported(facts: Facts, modules: Iterable[Module]) -> set[Module]:
    found: set[Module] = set()
    waiting = [*modules]
    while waiting:
        more = facts.imported(waiting.pop()) - found
        found |= more
        waiting += more
    return found


def _apart(facts: Facts, modules: set[Module]) -> frozenset[Module]:
    """Those scripts that have processes, and the files that only they import."""
    found = {module for module in modules if is_imported(facts, module) or _has_processes(facts, module)}
    while others := {m for m in found if any(m in other.imports for other in facts.modules if other not in found)}:
        found -= others
    scripts = {module for module in found if not is_imported(facts, module)}
    return frozenset(found) if scripts else frozenset()


def _has_processes(facts: Facts, module: Module) -> bool:
    """Whether a script joins a group of processes, itself or through what it calls."""
    units = reached(facts, [module])
    calls = (node for unit in units for node in facts.own(unit) if isinstance(node, ast.Call))
    return any(facts.called(call) & GROUPS for call in calls)


def _named(facts: Facts, modules: Iterable[Module]) -> set[str]:
    """The names and attributes that are read in some files: functions may be called without being seen."""
    found: set[str] = set()
    for module in modules:
        for node in facts.tree(module.tree).nodes:
            if isinstance(node, ast.ImportFrom):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
    return {name for name in found if name[:2] != "__"}
