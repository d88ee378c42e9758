"""The scripts of a project: the modules that code is entered from.

`train.py` and `train_multi_gpu.py` beside one `train_one_epoch()` are two programs. Each runs without the other, has
objects of its own, and makes an accelerator of its own.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.units import Function, Module

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


@dataclass(frozen=True, slots=True)
class Script:
    """A module that is a program of its own, and the training loops that it comes to."""

    module: Module
    loops: frozenset[ast.AST]

    @property
    def path(self) -> str:
        """Its file, as the user knows it."""
        return self.module.file.path


def entered_from(facts: Facts, unit: Unit) -> frozenset[Module]:
    """The modules whose own code leads to a unit; that of a function which nothing calls is its own."""
    found: set[Module] = set()
    waiting, seen = [unit.original if isinstance(unit, Function) else unit], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Module):
            found.add(current)
            continue
        above = [call.caller for call in facts.callers(current)]
        above += [current.parent] if not above and current.parent is not None else []
        found |= {current.module} if not above else set()
        waiting += [caller.original if isinstance(caller, Function) else caller for caller in above]
    return frozenset(found)


def begun_by(facts: Facts, program: Program) -> frozenset[str]:
    """The files that the loops of a program are entered from."""
    return frozenset(m.file.path for loop in program.training for m in entered_from(facts, loop.unit))


def may_run(facts: Facts, unit: Unit) -> bool:
    """Whether a unit runs in a script, as far as can be seen, or may be run by what is not seen."""
    waiting, seen = [unit], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Module) or facts.signatures.of(current).values or _by_name(facts, current):
            return True
        waiting += [call.caller for call in facts.callers(current)]
        waiting += [current.parent] if current.parent is not None else []
    return False


def _by_name(facts: Facts, unit: Function) -> bool:
    """Whether a method may be called without being seen: by Python itself, or on an object that is not known."""
    if unit.owner is None:
        return False
    if unit.name[:2] == unit.name[-2:] == "__":
        return bool(unit.owner.instances)
    return any(not facts.targets(use.node) and not facts.receiver(use.node) for use in facts.method_calls(unit.name))


def sharing(facts: Facts, loops: Loops) -> list[tuple[Script, ...]]:
    """Scripts that come to the same training loops, or to what makes the objects of theirs, group by group.

    None of them is imported by other code.
    """
    found: list[tuple[set[Module], bool]] = []
    for together in loops.together():
        modules = set[Module]().union(*(entered_from(facts, loop.unit) for loop in together))
        touching = [group for group in found if group[0] & modules]
        is_shared = len(modules) > 1 or any(group[1] for group in touching)
        merged = modules.union(*(group[0] for group in touching)), is_shared
        found = [group for group in found if group not in touching] + [merged]
    return [
        tuple(Script(m, frozenset(_loops(facts, loops, m))) for m in facts.modules if m in modules)
        for modules, is_shared in found
        if is_shared and all(m.file.named and not is_imported(facts, m) for m in modules)
    ]


def _loops(facts: Facts, loops: Loops, module: Module) -> Iterable[ast.AST]:
    return (loop.node for loop in loops.training if module in entered_from(facts, loop.unit))


def is_imported(facts: Facts, module: Module) -> bool:
    """Whether other code imports a module."""
    return any(module in other.imports for other in facts.modules if other is not module)
