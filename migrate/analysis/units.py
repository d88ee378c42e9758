"""The parts of a program that can be entered: modules, functions, classes; one object each for the whole analysis."""

from __future__ import annotations

import ast
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from migrate.analysis.known import words
from migrate.analysis.roles import NOTHING, Value, Values

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from migrate.source.project import SourceFile

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"


@dataclass(eq=False, slots=True)
class Module:
    """A file of the project and the names at its top level (joined over all places that bind them)."""

    file: SourceFile
    tree: ast.Module
    names: dict[str, Values] = field(default_factory=dict)
    _training_lines: list[int] | None = None

    @property
    def training_lines(self) -> list[int]:
        """The lines that hold a word a training program uses, in order."""
        if self._training_lines is None:
            self._training_lines = words.lines(self.file.content)
        return self._training_lines

    elsewhere: set[str] = field(default_factory=set)  # names that other units assign, too

    @property
    def module(self) -> Module:
        """Itself, as a function has the module it stands in."""
        return self

    @property
    def original(self) -> Module:
        """Itself; there are no copies of modules."""
        return self

    @property
    def path(self) -> str:
        """The path as the user knows it."""
        return self.file.path

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__.py` of a folder."""
        return self.path.endswith("__init__.py")


@dataclass(eq=False, slots=True)
class Call:
    """One place that calls a function of the project."""

    node: ast.Call
    caller: Function | Module
    bound: bool  # the first parameter is filled by the receiver


@dataclass(eq=False, slots=True)
class Function:
    """A function with what flows in (joined over all its callers) and out."""

    node: FunctionNode
    module: Module
    owner: Class | None = None
    parent: Function | None = None
    parameters: dict[str, Values] = field(default_factory=dict)
    names: dict[str, Values] = field(default_factory=dict)  # locals, joined: what closures see
    returns: Values = NOTHING
    yields: Values = NOTHING
    calls: dict[ast.Call, Call] = field(default_factory=dict)  # who calls it
    elsewhere: set[str] = field(default_factory=set)  # names that other units assign, too
    rest: ast.arg | None = None  # `*args`: the place of what it holds
    others: ast.arg | None = None  # `**kwargs`
    of: Function | None = None  # a copy for one call of a function that makes what its arguments say (see `factories`)
    site: ast.Call | None = None  # of a copy: that call
    makes: ast.Call | None = None  # of a copy: the call in its body that makes it
    escapes: bool = False  # used as a value in a way that hides its callers

    @property
    def name(self) -> str:
        """The name it was defined under."""
        return getattr(self.node, "name", "<lambda>")

    @property
    def original(self) -> Function:
        """The function of the program, of which this may be a copy."""
        return self.of or self

    @property
    def positional(self) -> list[ast.arg]:
        """The parameters that can be passed by position."""
        return [*self.node.args.posonlyargs, *self.node.args.args]

    @property
    def parameter_names(self) -> list[str]:
        """Every name that the signature binds."""
        arguments = self.node.args
        rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        return [argument.arg for argument in (*self.positional, *arguments.kwonlyargs, *rest)]

    @property
    def matters(self) -> bool:
        """Whether its body is worth a look even if nobody needs what it gives."""
        lines = self.module.training_lines
        after = bisect_left(lines, self.node.lineno)
        return after < len(lines) and lines[after] <= (self.node.end_lineno or self.node.lineno)

    def mentions(self, names: Set[bytes]) -> bool:
        """Whether one of the names stands in its text."""
        lines = self.module.file.content.splitlines()[self.node.lineno - 1 : self.node.end_lineno]
        return any(not names.isdisjoint(words.names(line)) for line in lines)

    @property
    def body(self) -> list[ast.stmt]:
        """The statements; of a lambda its expression as one."""
        if isinstance(self.node, ast.Lambda):
            return [ast.copy_location(ast.Return(self.node.body), self.node.body)]
        return self.node.body


@dataclass(eq=False, slots=True)
class Class:
    """A class of the project; `bases` are project classes and library names."""

    node: ast.ClassDef
    module: Module
    bases: Values = NOTHING
    names: dict[str, Values] = field(default_factory=dict)
    instances: Values = NOTHING  # objects of this class and of those derived from it

    def lineage(self) -> Iterator[Class]:
        """Itself and the classes of the project that it derives from, nearest first."""
        seen: dict[Class, None] = {}
        waiting = [self]
        while waiting:
            cls = waiting.pop(0)
            if cls not in seen:
                seen[cls] = None
                waiting.extend(base.unit for base in cls.bases if isinstance(base.unit, Class))
        return iter(seen)

    def lookup(self, name: str, seen: frozenset[int] = frozenset()) -> Values:
        """A class attribute or method, through the bases of the project."""
        if name in self.names:
            return self.names[name]
        for base in self.bases:
            if isinstance(base.unit, Class) and id(base.unit) not in seen:
                found = base.unit.lookup(name, seen | {id(self)})
                if found:
                    return found
        return NOTHING

    def library_bases(self, seen: frozenset[int] = frozenset()) -> set[str]:
        """The dotted names of the library classes it derives from, directly or not."""
        names: set[str] = set()
        for base in self.bases:
            if isinstance(base.unit, Class):
                if id(base.unit) not in seen:
                    names |= base.unit.library_bases(seen | {id(self)})
            elif base.name:
                names.add(base.name)
        return names


Unit: TypeAlias = "Module | Function"


def module_of(unit: Unit) -> Module:
    """The module a unit belongs to."""
    return unit if isinstance(unit, Module) else unit.module


def join(names: dict[str, Values], name: str, values: Values) -> bool:
    """Add values to a name; whether that was news."""
    old = names.get(name)
    if old is not None and values <= old:
        return False
    names[name] = (old or NOTHING) | values
    return True


__all__ = ["Call", "Class", "Function", "FunctionNode", "Module", "Unit", "Value", "join", "module_of"]
