"""Lengths of loaders: where a program reads them, and whether the loader is prepared by then.

After prepare a loader is as long as its process's share, before it as long as the data.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import line_of, walk
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value
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
    if "builtins.len" not in facts.called(call) or not call.args:
        return set()
    counted = call.args[0]
    if isinstance(counted, ast.Call) and facts.called(counted) & _COPIES and counted.args:
        counted = counted.args[0]
    return facts.loaders(frozenset(value for value in facts.values(counted) if _is_as_long(facts, value)))


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
    for inner in ast.walk(node):
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
        if stage.unit is not self._program.home:
            return {self._facts.unit(length) is not stage.unit or length.lineno > stage.end}
        return is_after(self._facts, self._program, length, stage.end)


def is_after(facts: Facts, program: Program, node: ast.AST, end: int, seen: frozenset[int] = frozenset()) -> set[bool]:
    """For each way in which a node is reached, whether it is below a line of the home then."""
    unit = facts.unit(node)
    if unit is program.home:
        return {line_of(node) > end}
    if not isinstance(unit, Function):
        return {False}
    calls = facts.callers(unit) if id(unit) not in seen else ()
    return {moment for call in calls for moment in is_after(facts, program, call.node, end, seen | {id(unit)})}
