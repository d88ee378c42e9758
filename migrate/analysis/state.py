"""What the interpreter knows so far: one growing picture of the program. Everything in it only ever grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.roles import NOTHING, Evidence, Role, Value, Values
from migrate.analysis.units import Class, Function, FunctionNode, Module, Unit, join, module_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from migrate.source.project import Project, SourceFile

#: An expression that may be more things than this is treated as unknown from then on: it keeps the solver bounded.
WIDEST = 48

ELEMENT = "*"  # the key under which the elements of unknown position are kept
OVER = "<over>"  # what an iterator runs over, what an optimizer trains, what a loader reads


@dataclass(slots=True)
class Binding:
    """One statement that gives a name or attribute a value."""

    unit: Unit
    target: str  # as written: "model", "self.model"
    statement: ast.stmt
    values: Values


@dataclass(slots=True)
class Frame:
    """A unit being run, with the names as they are at this point of it."""

    unit: Unit
    names: dict[str, Values]
    shared: frozenset[str] = frozenset()  # declared `global`
    statement: ast.stmt | None = None


@dataclass(slots=True)
class State:
    """Values of expressions, contents of objects, and the units they were found in."""

    project: Project
    modules: dict[str, Module] = field(default_factory=dict)
    functions: dict[FunctionNode, Function] = field(default_factory=dict)
    classes: dict[ast.ClassDef, Class] = field(default_factory=dict)
    values: dict[ast.expr, Values] = field(default_factory=dict)
    heap: dict[tuple[ast.AST, str], Values] = field(default_factory=dict)
    bindings: dict[tuple[int, str, ast.stmt], Binding] = field(default_factory=dict)
    unit_of: dict[ast.stmt, Unit] = field(default_factory=dict)
    changed: bool = False
    settled: bool = False  # what is still unknown is unknown for good: only then unknown calls make objects

    def module(self, file: SourceFile) -> Module | None:
        """The module of a file; None for a file that does not parse."""
        key = str(file.real or file.path)
        if key not in self.modules:
            if file.error is not None:
                return None
            self.modules[key] = Module(file, file.tree)
            self.changed = True
        return self.modules[key]

    def record(self, node: ast.expr, values: Values) -> Values:
        """Join values into what the expression may be."""
        old = self.values.get(node, NOTHING)
        if not values <= old:
            if len(old) < WIDEST:
                self.values[node] = old | values
                self.changed = True
        return values

    def load(self, owner: ast.AST, key: str) -> Values:
        """What an object holds under a key."""
        return self.heap.get((owner, key), NOTHING)

    def store(self, owner: ast.AST | None, key: str, values: Values) -> None:
        """Put values into an object; nothing is ever taken out."""
        if owner is None or not values:
            return
        old = self.heap.get((owner, key), NOTHING)
        if not values <= old and len(old) < WIDEST:
            self.heap[owner, key] = old | values
            self.changed = True

    def copy(self, source: ast.AST, target: ast.AST) -> None:
        """Put everything that one object holds into another: {**a}, a.update(b)."""
        for (owner, key), values in list(self.heap.items()):
            if owner is source:
                self.store(target, key, values)

    def bind(self, frame: Frame, target: str, values: Values) -> None:
        """Remember that the running statement gave `target` these values."""
        assert frame.statement is not None
        key = (id(frame.unit), target, frame.statement)
        binding = self.bindings.get(key)
        if binding is None:
            self.bindings[key] = Binding(frame.unit, target, frame.statement, values)
        else:
            binding.values |= values

    def name(self, unit: Unit, name: str, values: Values) -> None:
        """Join values into a name of a unit, as closures and other functions see it."""
        if join(unit.names, name, values):
            self.changed = True

    def join_parameter(self, function: Function, name: str, values: Values) -> None:
        """Join values into a parameter of a function."""
        if values and join(function.parameters, name, values):
            self.changed = True

    def because(self, what: str, node: ast.AST, unit: Unit, before: Evidence | None = None) -> Evidence:
        """Evidence at a node of a unit."""
        return Evidence(what, module_of(unit).path, getattr(node, "lineno", 0), before)

    def iterated(self, values: Iterable[Value]) -> Values:
        """What iterating over the values gives."""
        found: set[Value] = set()
        for value in values:
            if value.role is Role.LOADER:
                found.add(Value(Role.BATCH, value.origin, because=value.because, certainty=value.certainty))
            elif value.role in (Role.BATCH, Role.SAMPLES, Role.PARAMETERS):
                found.add(value)
            elif value.origin is not None and value.role in (Role.ITERATOR, Role.CONTAINER):
                found |= self.load(value.origin, ELEMENT)
                position = 0
                while (value.origin, str(position)) in self.heap:
                    found |= self.load(value.origin, str(position))
                    position += 1
        return frozenset(found)

    def loaders(self, values: Values, depth: int = 4) -> Values:
        """The loaders behind the values: themselves, or what their iterators run over."""
        found: set[Value] = set()
        for value in values:
            if value.role is Role.LOADER:
                found.add(value)
            elif value.role in (Role.ITERATOR, Role.CONTAINER) and value.origin is not None and depth:
                found |= self.loaders(self.load(value.origin, OVER), depth - 1)
        return frozenset(found)
