"""Lengths of loaders: where a program reads them, and whether the loader is prepared by then.

After prepare a loader is as long as its process's share, before it as long as the data.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import line_of, walk
from migrate.analysis.units import Class, Function
from migrate.programs.values.former import is_former

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program
    from migrate.programs.stages import Stages


#: Functions whose result counts what their arguments count.
COUNTING = frozenset(f"builtins.{name}" for name in "min max int float round".split())
_COPIES = frozenset({"builtins.list", "builtins.tuple"})
#: What has as many items as a loader has batches: itself, a progress bar over it.
_AS_LONG = frozenset({Role.LOADER, Role.ITERATOR})


def measured(facts: Facts, call: ast.Call) -> set[ast.AST]:
    """Where the loaders were made whose length is read: `len(loader)`, `len(list(loader))`, `len(tqdm(loader))`.

    Also that of an object which runs over one, and is as long: `def __len__(self): return len(self.loader)`.
    """
    counted = counted_in(facts, call)
    if counted is None:
        return set()
    return facts.loaders(frozenset(value for value in facts.values(counted) if _is_as_long(facts, value)))


def counted_in(facts: Facts, call: ast.Call) -> ast.expr | None:
    """What a call takes the length of, of which a list may be made for it; nothing where it takes none."""
    counted = sized(facts, call)
    if isinstance(counted, ast.Call) and facts.called(counted) & _COPIES and counted.args:
        return counted.args[0]
    return counted


def sized(facts: Facts, call: ast.Call) -> ast.expr | None:
    """`x` of `len(x)` and of `x.__len__()`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "__len__" and not call.args:
        return call.func.value
    return call.args[0] if call.args and "builtins.len" in facts.called(call) else None


def _is_as_long(facts: Facts, value: Value) -> bool:
    if value.role is not Role.INSTANCE or not isinstance(value.unit, Class) or value.origin is None:
        return value.role in _AS_LONG
    held = facts.holding(value.origin)
    methods = [member.unit for member in value.unit.lookup("__len__") if isinstance(member.unit, Function)]
    given = [node.value for unit in methods for node in walk(unit.node) if isinstance(node, ast.Return)]
    return bool(given) and all(facts.loaders(held.get(_measured_by(each), frozenset())) for each in given)


def _measured_by(given: ast.expr | None) -> str:
    """The attribute of which a method gives the length: `return len(self.loader)`; empty: it gives something else."""
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id == "len" and given.args:
        counted = given.args[0]
        if isinstance(counted, ast.Attribute) and isinstance(counted.value, ast.Name):
            return counted.attr
    return ""


def lengths(facts: Facts, program: Program, node: ast.AST) -> Iterator[ast.Call]:
    """The expressions in a piece of code that read the length of a loader that is trained on."""
    for inner in walk(node):
        if isinstance(inner, ast.Call) and measured(facts, inner) & program.training_loaders:
            yield inner


class Moments:
    """Whether the length of a loader is read before or after that is prepared."""

    def __init__(self, facts: Facts, program: Program, stages: Stages) -> None:
        self._facts = facts
        self._program = program
        self._stages = stages

    def after(self, length: ast.Call) -> set[bool]:
        """For each way in which the length is read, whether the loader is prepared then."""
        loaders = measured(self._facts, length) & self._program.training_loaders
        stage = self._stages.of(loaders)
        if is_former(self._facts, stage, counted_in(self._facts, length)):
            return {False}
        if stage.unit is not self._program.home:
            return {self._facts.unit(length) is not stage.unit or length.lineno > stage.end}
        return is_after(self._facts, self._program, length, stage.end)


def is_after(facts: Facts, program: Program, node: ast.AST, end: int, seen: set[Unit] | None = None) -> set[bool]:
    """For each way in which a node is reached, whether it is below a line of the home then.

    What is below the one call of the home is, too: a method that is called once its object is made, by which all is
    prepared.
    """
    unit = facts.unit(node)
    if (line := _lines_above(facts, program, end).get(unit)) is not None:
        return {line_of(node) > line}
    if not isinstance(unit, Function):
        return {False}
    found, seen = set[bool](), set() if seen is None else seen
    calls = facts.callers(unit) if unit not in seen else ()
    seen.add(unit)
    for call in calls:
        is_made = _makes_its_object(facts, program, unit, call.caller)
        found |= {True} if is_made else is_after(facts, program, call.node, end, seen)
    return found


def _makes_its_object(facts: Facts, program: Program, unit: Function, caller: Unit) -> bool:
    """Whether a method that others call has an object which has prepared all when it was made, wherever that was."""
    home = program.home
    if not isinstance(home, Function) or home.owner is None or unit.owner is None or not unit.has_object:
        return False
    makers = [home] if home.sets_up else [call.caller for call in facts.callers(home)]
    if not makers or not all(isinstance(each, Function) and each.sets_up for each in makers) or unit in (home, *makers):
        return False
    owner = caller.owner if isinstance(caller, Function) else None
    return unit.owner.is_related(home.owner) and not (owner is not None and owner.is_related(home.owner))


def _lines_above(facts: Facts, program: Program, end: int) -> dict[Unit, int]:
    """The line in the home, and that of the one call which leads to it, in each of the units above it."""
    found: dict[Unit, int] = {}
    unit, line = program.home, end
    while unit is not None and unit not in found:
        found[unit] = line
        calls = facts.callers(unit) if isinstance(unit, Function) else ()
        if len(calls) == 1:
            unit, line = calls[0].caller, calls[0].node.end_lineno or calls[0].node.lineno
    return found
