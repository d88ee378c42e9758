"""The scripts of a project: the modules that code is entered from.

`train.py` and `train_multi_gpu.py` beside one `train_one_epoch()` are two programs. Each runs without the other, has
objects of its own, and makes an accelerator of its own.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from migrate.analysis.entrances import entered_from
from migrate.analysis.known.distributed import DATA_PARALLEL
from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Function, Module
from migrate.programs.marker import marks
from migrate.programs.prepare.visitors import may_visit

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program

NOTHING: Mapping[Function, frozenset[Module]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Script:
    """A module that is a program of its own, and the training loops that it comes to."""

    module: Module
    loops: frozenset[ast.AST]
    starters: frozenset[Module] = frozenset()  # modules that import it and run it: one program with it
    visitors: frozenset[Module] = frozenset()  # that enter its functions with objects of their own, on the CPU

    @property
    def path(self) -> str:
        """Its file, as the user knows it."""
        return self.module.file.path


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


def asking_for_several(facts: Facts, paths: Container[str]) -> dict[Function, frozenset[Module]]:
    """The functions of some files that ask the accelerator, with the modules that they are entered from, where several.

    A program that has one may hand it to them, if there is no other program.
    """
    units = {facts.unit(mark) for m in facts.editable if m.file.path in paths for mark in marks(m.tree)}
    entered = {unit: frozenset(entered_from(facts, unit)) for unit in units if isinstance(unit, Function)}
    return {unit: modules for unit, modules in entered.items() if len(modules) > 1}


def evaluating_for_several(facts: Facts, loops: Loops, left: Container[ast.AST]) -> dict[Function, frozenset[Module]]:
    """The functions that evaluate on what a training which is `left` runs over, for that and for other scripts.

    With the modules that they are entered from: none of these programs alone may change such a function.
    """
    trained = {loader for loop in loops.training if loop.node in left for loader in loop.loaders}
    units = {loop.unit for loop in loops.evaluation if isinstance(loop.unit, Function) and loop.loaders & trained}
    entered = {unit: frozenset(entered_from(facts, unit)) for unit in units}
    return {unit: modules for unit, modules in entered.items() if len(modules) > 1}


def wrapping_for_several(facts: Facts, loops: Loops, left: Container[ast.AST]) -> dict[Function, frozenset[Module]]:
    """The functions that put DataParallel around what a training trains that is `left`, for that and for other scripts.

    With the modules that they are entered from: it goes for all of them, or stays.
    """
    trained = {model for loop in loops.training if loop.node in left for model in _models(facts, loops, loop)}
    made = (use for use in facts.calls if facts.called(use.node) & DATA_PARALLEL)
    units = {use.unit for use in made if origins(facts.values(use.node), Role.MODEL) & trained}
    entered = {unit: frozenset(entered_from(facts, unit)) for unit in units if isinstance(unit, Function)}
    return {unit: modules for unit, modules in entered.items() if len(modules) > 1}


def _models(facts: Facts, loops: Loops, loop: LoopFact) -> set[ast.AST]:
    return set[ast.AST]().union(*(facts.models_of.get(made, ()) for made in loops.trained_by(loop)))


def sharing(
    facts: Facts, loops: Loops, left: Container[ast.AST], asking: Mapping[Function, frozenset[Module]] = NOTHING
) -> list[tuple[Script, ...]]:
    """Scripts that come to the same training loops, backward calls, or what makes their objects, group by group.

    So do those that share what is `asking` the accelerator for something.

    None of them is imported by other code, but for a module that only runs it (`import train; train.main(args)`), and
    their visitors. What one function makes for each of them, such as `model.configure_optimizers()`, binds them
    together only where all of their loops are `left` without that.
    """
    found: list[_Group] = []
    known: dict[Module, bool] = {}
    for together in loops.together():
        modules = set[Module]().union(*(entered_from(facts, loop.unit) for loop in together))
        calls: set[ast.AST] = {call for loop in together for call in loop.backwards}
        guests = {m for m in modules if modules & m.imports and _visits(facts, loops, m, known)}
        scripts = modules - guests or modules
        makers = {facts.source(origin) for loop in together for origin in loops.trained_by(loop)}
        bonds = calls | makers if all(loop.node in left for loop in together) else calls
        bonds |= {unit.node for unit, entered in asking.items() if entered & scripts}
        touching = [group for group in found if group.scripts & scripts or group.bonds & bonds]
        is_shared = len(modules) > 1 or any(group.is_shared or group.bonds & bonds for group in touching)
        merged = _Group(scripts, modules - scripts, bonds, is_shared)
        found = [group for group in found if group not in touching] + [merged.with_all(touching)]
    scripts_of = (_scripts(facts, loops, group) for group in found if group.is_shared)
    return [group for group in scripts_of if len(group) > 1 or any(script.visitors for script in group)]


def _scripts(facts: Facts, loops: Loops, group: _Group) -> tuple[Script, ...]:
    """The scripts of a group; none where it cannot be told which modules are one."""
    modules = [module for module in facts.modules if module not in group.visitors]
    own = [m for m in modules if m in group.scripts and not m.imports & group.scripts - {m}]
    leads = {module: module for module in own}
    while more := [m for m in modules if m not in leads and not leads.keys().isdisjoint(m.imports)]:
        leads |= {module: next(leads[i] for i in module.imports if i in leads) for module in more}
    for module, script in leads.items():
        if not module.file.named or any(leads.get(imported, script) is not script for imported in module.imports):
            return ()
    starters = {script: frozenset(m for m in leads if leads[m] is script is not m) for script in own}
    visitors = frozenset(group.visitors)
    return tuple(Script(m, frozenset(_loops(facts, loops, m)), starters[m], visitors) for m in own)


@dataclass(frozen=True, slots=True)
class _Group:
    scripts: set[Module]
    visitors: set[Module]
    bonds: set[ast.AST]  # the backward calls, and of what is left where optimizers are made, in the source
    is_shared: bool

    def with_all(self, others: Collection[_Group]) -> _Group:
        scripts = self.scripts.union(*(other.scripts for other in others))
        visitors = self.visitors.union(*(other.visitors for other in others))
        return _Group(scripts, visitors, self.bonds.union(*(other.bonds for other in others)), self.is_shared)


def _visits(facts: Facts, loops: Loops, module: Module, known: dict[Module, bool]) -> bool:
    """Whether a file trains in functions of others alone, and may have an accelerator of its own for these."""
    if module not in known:
        own = any(loop.unit.module is module for loop in loops.training)
        known[module] = not own and may_visit(facts, module)
    return known[module]


def _loops(facts: Facts, loops: Loops, module: Module) -> Iterable[ast.AST]:
    return (loop.node for loop in loops.training if module in entered_from(facts, loop.unit))


def is_imported(facts: Facts, module: Module, besides: Collection[Module] = ()) -> bool:
    """Whether other code imports a module; `besides` some modules."""
    return any(module in other.imports for other in facts.modules if other is not module and other not in besides)
