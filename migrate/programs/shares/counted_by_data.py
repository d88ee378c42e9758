"""What a data set counts of what it is asked for: `self.seen += 1` in its `__getitem__`.

Each process asks for the samples of its own batches alone, so what the data set goes by (a curriculum) and what is
shown of it is of one process's share.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.analysis.units import Class, Function
from migrate.programs.reach.forwards import is_own_object, with_own_methods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact

_ASKED = ("__getitem__", "__getitems__")
_ADDING = frozenset({"append", "extend"})
_DEEPEST = 3  # data sets of data sets


def counted_by_data(facts: Facts, loop: LoopFact) -> Iterator[tuple[ast.stmt, str]]:
    """The statements by which the data of a training loop count, or collect, and where; something reads it."""
    for cls in dict.fromkeys(each for loader in loop.loaders for each in _classes(facts, loader, _DEEPEST)):
        methods = [each.unit for name in _ASKED for each in cls.lookup(name) if isinstance(each.unit, Function)]
        for method in dict.fromkeys(inner for each in methods for inner in with_own_methods(facts, each)):
            for statement, place in _grown(facts, method):
                if _is_read(facts, cls, place, statement):
                    yield statement, ast.unparse(place)


def _classes(facts: Facts, origin: ast.AST, depth: int) -> Iterator[Class]:
    for data in facts.over(origin):
        if isinstance(data.unit, Class):
            yield data.unit
        if depth and data.origin is not None and data.origin is not origin:
            yield from _classes(facts, data.origin, depth - 1)


def _grown(facts: Facts, method: Function) -> Iterator[tuple[ast.stmt, ast.Attribute]]:
    """`self.seen += 1`, `self.seen = self.seen + 1`, `self.counts[label] += 1`, `self.drawn.append(index)`."""
    for node in facts.own(method).of(ast.stmt):
        match node:
            case ast.AugAssign(target=ast.Attribute() as place):
                pass
            case ast.AugAssign(target=ast.Subscript(value=ast.Attribute() as place)):
                pass
            case ast.Assign(targets=[ast.Attribute() as place], value=value) if _reads(value, place):
                pass
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Attribute() as place, attr=name))):
                if name not in _ADDING:
                    continue
            case _:
                continue
        if is_own_object(method, place.value):
            yield node, place


def _reads(value: ast.expr, place: ast.Attribute) -> bool:
    """Whether arithmetic goes on from what a place held."""
    sides = [side for node in walk(value).of(ast.BinOp) for side in (node.left, node.right)]
    return any(ast.unparse(side) == ast.unparse(place) for side in sides)


def _is_read(facts: Facts, cls: Class, place: ast.Attribute, statement: ast.stmt) -> bool:
    inside = set(walk(statement))
    return any(
        _is_of(facts, unit, node, cls)
        for unit in facts.units
        for node in facts.own(unit).of(ast.Attribute)
        if node.attr == place.attr and isinstance(node.ctx, ast.Load) and node not in inside
    )


def _is_of(facts: Facts, unit: Unit, node: ast.Attribute, cls: Class) -> bool:
    """Whether an attribute is one of an object of a class."""
    if isinstance(unit, Function) and unit.owner is not None and is_own_object(unit, node.value):
        return unit.owner.is_related(cls)
    return any(value.unit is cls for value in facts.values(node.value))
