"""Data sets that give a sample without looking at the number that they are asked for.

    def __getitem__(self, index):
        return self.rows[random.randrange(len(self.rows))]         # drawn
        return parse(self.file.readline())                         # the next one, wherever it was

Only numbers are shared out among processes, so each of them gets what it would get alone: the same samples.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.analysis.units import Function
from migrate.programs.chance.calls import draws_sample, of_samples
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Class

#: What gives another thing each time that it is asked.
_TAKING = frozenset("readline read next pop popleft popitem get_nowait recv fetchone".split())


def drawn_beside_number(facts: Facts, cls: Class) -> Function | None:
    """The method by which a data set of the project draws its samples, whatever number it is asked for."""
    return next(_unnumbered(cls), None) if draws_sample(facts, cls) else None


def taken_beside_number(facts: Facts, cls: Class) -> Function | None:
    """The method by which one gives the sample that comes next, whatever number it is asked for."""
    found = next(_unnumbered(cls), None)
    return found if found is not None and any(_goes_on(facts, unit) for unit in of_samples(cls)) else None


def _unnumbered(cls: Class) -> Iterator[Function]:
    for unit in (value.unit for value in cls.lookup("__getitem__")):
        if isinstance(unit, Function) and len(unit.positional) > 1 and not _asks(unit, unit.positional[1].arg):
            yield unit


def _asks(unit: Function, number: str) -> bool:
    """Whether a method goes by its number, and does not only refuse one that is too large."""
    checked = {
        inner
        for node in walk(unit.node).of(ast.If)
        if isinstance(node.body[0], ast.Raise) and not node.orelse
        for inner in walk(node.test)
    }
    return any(node.id == number and node not in checked for node in walk(unit.node).of(ast.Name))


def _goes_on(facts: Facts, unit: Function) -> bool:
    """Whether what a method gives goes on from what it gave before: it takes the next one, or counts itself."""
    me = unit.positional[0].arg if unit.positional else None
    if any(_is_taking(facts, call) for call in walk(unit.node).of(ast.Call)):
        return True
    kept = (node.target for node in walk(unit.node).of(ast.AugAssign))
    return any(isinstance(to, ast.Attribute) and ast.unparse(to.value) == me for to in kept)


def _is_taking(facts: Facts, call: ast.Call) -> bool:
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _TAKING
    return (is_method and not facts.targets(call)) or "builtins.next" in called_by_name(facts, call)
