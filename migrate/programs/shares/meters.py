"""Classes of the project that add numbers up, such as an AverageMeter, and where their objects are fed, reset and read.

A class is a meter if each of its methods does one of three things: it grows attributes by what it is given (feeds),
sets them to constants (resets), or only reads them. One method of another kind, and the class is something else.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import reads
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts


@dataclass(frozen=True, slots=True)
class Meter:
    """A class: the attributes that grow, those computed from them, and what its methods are for."""

    cls: Class
    sums: frozenset[str]
    derived: frozenset[str]  # computed from the sums, or the last value itself
    feeds: frozenset[str]
    resets: frozenset[str]
    reads: frozenset[str]
    is_mean: bool  # one sum is divided by another


@dataclass(frozen=True, slots=True)
class MeterUse:
    """One object of a meter: where it was made, and the calls and attributes that feed, reset and read it."""

    meter: Meter
    origin: ast.AST
    fed: tuple[ast.Call, ...]
    reset: tuple[ast.Call, ...]
    read: tuple[ast.Attribute, ...]


class Meters:
    """The meters of a program."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @cached_property
    def classes(self) -> dict[Class, Meter]:
        """Each class that is a meter."""
        owners = {unit.owner for unit in self._facts.functions if unit.owner is not None}
        found = (meter_of(cls) for cls in sorted(owners, key=lambda c: (c.module.path, c.node.lineno)))
        return {meter.cls: meter for meter in found if meter is not None}

    @cached_property
    def uses(self) -> tuple[MeterUse, ...]:
        """Every object of a meter, in the order in which they are met."""
        collected: dict[ast.AST, tuple[Meter, dict[str, list[ast.Attribute]]]] = {}
        for module in self._facts.modules if self.classes else ():
            for node in self._facts.tree(module.tree).nodes:
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    for meter, origin in self._objects(node.value):
                        if not self._is_inside(node, meter):
                            collected.setdefault(origin, (meter, {}))[1].setdefault(node.attr, []).append(node)
        return tuple(self._use(meter, origin, found) for origin, (meter, found) in collected.items())

    def _objects(self, node: ast.expr) -> Iterator[tuple[Meter, ast.AST]]:
        for value in self._facts.values(node):
            if value.role is Role.INSTANCE and isinstance(value.unit, Class) and value.origin is not None:
                if value.unit in self.classes:
                    yield self.classes[value.unit], value.origin

    def _is_inside(self, node: ast.AST, meter: Meter) -> bool:
        return any(above is meter.cls.node for above in self._facts.tree(node).up(node))

    def _use(self, meter: Meter, origin: ast.AST, found: dict[str, list[ast.Attribute]]) -> MeterUse:
        read = meter.sums | meter.derived | meter.reads
        return MeterUse(
            meter,
            origin,
            tuple(call for name in sorted(meter.feeds) for call in self._calls(found.get(name, ()))),
            tuple(call for name in sorted(meter.resets) for call in self._calls(found.get(name, ()))),
            tuple(node for name in found if name in read for node in found[name]),
        )

    def _calls(self, nodes: list[ast.Attribute] | tuple[()]) -> Iterator[ast.Call]:
        for node in nodes:
            parent = self._facts.tree(node).parents[node]
            if isinstance(parent, ast.Call) and parent.func is node:
                yield parent


# --- a class by itself ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Method:
    """What a method does to its object: attribute → the expressions it is grown by, or given."""

    parameters: set[str]
    grown: dict[str, list[ast.expr]] = field(default_factory=dict)
    given: dict[str, list[ast.expr]] = field(default_factory=dict)
    is_odd: bool = False  # it changes something else


def meter_of(cls: Class) -> Meter | None:
    """What a class is as a meter; None if it is something else."""
    if cls.library_bases() - {"builtins.object"} or len(cls.mro()) > 1:
        return None
    units = {n: v.unit for n, values in cls.names.items() for v in values if isinstance(v.unit, Function)}
    methods = {name: _method(unit) for name, unit in units.items()}
    if any(method.is_odd for method in methods.values()):
        return None
    sums = {a for n, m in methods.items() if n != "__init__" for a, by in m.grown.items() if _read(by) & m.parameters}
    feeds = {name for name, method in methods.items() if method.grown.keys() & sums and name != "__init__"}
    resets = {n for n, m in methods.items() if n not in feeds and m.given.keys() & sums and _is_constant(m, sums)}
    rest = methods.keys() - feeds - resets - {"__init__"}
    if not sums or any(methods[name].given.keys() & sums or methods[name].grown for name in rest):
        return None
    derived = {a for n, m in methods.items() if n in feeds for a in m.given} - sums
    nodes = [node for unit in units.values() for node in ast.walk(unit.node)]
    return Meter(
        cls,
        frozenset(sums),
        frozenset(derived),
        frozenset(feeds),
        frozenset(resets - {"__init__"}),
        frozenset(rest),
        any(_divides(node, sums) for node in nodes),
    )


def _method(unit: Function) -> _Method:
    parameters = {p.arg for p in (*unit.positional[1:], *unit.node.args.kwonlyargs)}
    own = unit.positional[0].arg if unit.positional else ""
    method = _Method(parameters)
    for node in ast.walk(unit.node):
        if isinstance(node, ast.AugAssign) and (name := _own(node.target, own)):
            method.grown.setdefault(name, []).append(node.value)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                _assigned(method, target, node.value, own)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWING:
            if name := _own(node.func.value, own):
                method.grown.setdefault(name, []).extend(node.args)
        elif isinstance(node, (ast.For, ast.While, ast.With, ast.Global)) and method.parameters:
            method.is_odd = True
    return method


_GROWING = frozenset({"append", "extend", "add"})


def _assigned(method: _Method, target: ast.expr, value: ast.expr, own: str) -> None:
    name = _own(target, own)
    if name is None:
        method.is_odd = method.is_odd or isinstance(target, (ast.Attribute, ast.Subscript))
    elif any(_own(inner, own) == name for inner in ast.walk(value)):  # self.sum = self.sum + x
        method.grown.setdefault(name, []).append(value)
    else:
        method.given.setdefault(name, []).append(value)


def _own(node: ast.AST, own: str) -> str | None:
    """The name of an attribute of the object itself."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own
    return node.attr if is_own and isinstance(node, ast.Attribute) else None


def _read(expressions: list[ast.expr]) -> set[str]:
    return set().union(*map(reads, expressions))


def _is_constant(method: _Method, sums: set[str]) -> bool:
    """Whether a method gives the sums nothing that it was given."""
    values = [value for name in method.given.keys() & sums for value in method.given[name]]
    return all(not reads(value) & method.parameters for value in values)


def _divides(node: ast.AST, sums: set[str]) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return False
    sides = [
        {n.attr for n in ast.walk(side) if isinstance(n, ast.Attribute)} & sums for side in (node.left, node.right)
    ]
    return all(sides)
