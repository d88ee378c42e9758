"""The parts of a program that can be entered: modules, functions, classes; one object each for the whole analysis."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from migrate.analysis.known import words
from migrate.analysis.rebound import rebound
from migrate.analysis.roles import NOTHING, Role, Values
from migrate.analysis.syntax import set_attributes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from migrate.source.project import SourceFile

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"


@dataclass(eq=False, slots=True)
class Module:
    """A file of the project and the names at its top level (joined over all places that bind them)."""

    file: SourceFile
    tree: ast.Module
    names: dict[str, Values] = field(default_factory=dict)
    imports: set[Module] = field(default_factory=set)  # those of the project that its code imports
    elsewhere: set[str] = field(default_factory=set)  # names that other units assign, too
    _training_lines: list[int] | None = None
    _lines: list[bytes] | None = None
    _rebound: frozenset[tuple[ast.stmt, str]] | None = None

    def text(self, node: ast.stmt | ast.expr) -> bytes:
        """The lines of a node, as they stand in the file."""
        if self._lines is None:
            self._lines = self.file.content.splitlines(keepends=True)
        return b"".join(self._lines[node.lineno - 1 : node.end_lineno])

    @property
    def training_lines(self) -> list[int]:
        """The lines that hold a word a training program uses, in order."""
        if self._training_lines is None:
            self._training_lines = words.lines(self.file.content)
        return self._training_lines

    @property
    def rebound(self) -> frozenset[tuple[ast.stmt, str]]:
        """The imports of which a name is given away before anybody else reads it."""
        if self._rebound is None:
            self._rebound = rebound(self.tree)
        return self._rebound

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


@dataclass(frozen=True, slots=True)
class Handed:
    """A call that a library makes, of a function that it was handed: what the program says of its arguments.

    None stands for what the library passes of its own; what is passed from a sequence that is not written out is a
    `Starred` that stands in no file, around the expression that does.
    """

    by: str  # the library's function
    function: ast.expr | None  # where it is handed over
    args: tuple[ast.expr | None, ...] = ()
    keywords: tuple[ast.keyword, ...] = ()
    often: bool = False  # any number of times


@dataclass(eq=False, slots=True)
class Call:
    """One place that calls a function of the project, or hands it to a library that does."""

    node: ast.Call
    caller: Function | Module
    bound: bool  # the first parameter is filled by the receiver
    handed: Handed | None = None

    @property
    def args(self) -> Sequence[ast.expr | None]:
        """What is passed by position; None: something that a library has of its own."""
        return self.node.args if self.handed is None else self.handed.args

    @property
    def keywords(self) -> Sequence[ast.keyword]:
        """What is passed by keyword."""
        return self.node.keywords if self.handed is None else self.handed.keywords


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
    defaults: dict[str, Values] = field(default_factory=dict)
    of: Function | None = None  # of a copy for one call (see `factories`): the function
    outer: Function | None = None  # of a copy: the copy that the call is in
    first: tuple[ast.Call | None, Function | None] | None = None  # the call that needs no copy; None: those of models
    copies: int = 0
    is_maker: bool | None = None  # whether it gives what it has made; None: not known yet
    hands_names: set[str] = field(default_factory=set)  # parameters it hands on to what calls by a name (see `hooks`)
    is_mixed: bool = False  # whether calls of it are not told apart that give it such a name
    is_after_fields: bool = False  # a `__post_init__`, which the call of a class that is made of fields enters

    @property
    def name(self) -> str:
        """The name it was defined under."""
        return getattr(self.node, "name", "<lambda>")

    @property
    def sets_up(self) -> bool:
        """Whether it runs when an object is made, before all other methods."""
        return self.owner is not None and (self.name == "__init__" or self.original.is_after_fields)

    @property
    def original(self) -> Function:
        """The function of the program, of which this may be a copy."""
        return self.of or self

    @property
    def positional(self) -> list[ast.arg]:
        """The parameters that can be passed by position."""
        return [*self.node.args.posonlyargs, *self.node.args.args]

    @property
    def itself(self) -> ast.arg | None:
        """The parameter by which a method has its object, or its class; None for functions and static methods."""
        decorators = {ast.unparse(decorator) for decorator in getattr(self.node, "decorator_list", ())}
        is_method = self.owner is not None and "staticmethod" not in decorators
        return next(iter(self.positional), None) if is_method else None

    @property
    def has_object(self) -> bool:
        """Whether it is a method that is entered with an object of its class: no static method, and none of a class."""
        decorators = {ast.unparse(decorator) for decorator in getattr(self.node, "decorator_list", ())}
        return self.itself is not None and "classmethod" not in decorators

    @property
    def parameter_names(self) -> list[str]:
        """Every name that the signature binds."""
        arguments = self.node.args
        rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        return [argument.arg for argument in (*self.positional, *arguments.kwonlyargs, *rest)]

    @property
    def builds_model(self) -> bool:
        """Whether it is a method of a model: the models that it makes are parts of that one."""
        if (itself := self.itself) is None:
            return False
        selves = self.parameters.get(itself.arg, NOTHING)
        return bool(selves) and all(value.role is Role.MODEL for value in selves)

    @property
    def matters(self) -> bool:
        """Whether its body is worth a look even if nobody needs what it gives."""
        lines = self.module.training_lines
        after = bisect_left(lines, self.node.lineno)
        return after < len(lines) and lines[after] <= (self.node.end_lineno or self.node.lineno)

    def mentions(self, names: AbstractSet[bytes]) -> bool:
        """Whether one of the names stands in its text."""
        return not names.isdisjoint(words.names(self.module.text(self.node)))

    @property
    def body(self) -> list[ast.stmt]:
        """The statements; of a lambda its expression as one."""
        if isinstance(self.node, ast.Lambda):
            return [ast.copy_location(ast.Return(self.node.body), self.node.body)]
        return self.node.body


@dataclass(eq=False, slots=True)
class Class:
    """A class of the project."""

    node: ast.ClassDef
    module: Module
    parents: tuple[Values, ...] = ()  # what each base expression may be: classes of the project, library names
    names: dict[str, Values] = field(default_factory=dict)
    instances: Values = NOTHING  # objects of this class and of those derived from it
    _sets: frozenset[str] | None = None
    _order: list[Class] | None = None
    _libraries: frozenset[str] | None = None
    _trains: bool | None = None

    @property
    def name(self) -> str:
        """The name it was defined under."""
        return self.node.name

    @property
    def trains(self) -> bool:
        """Whether its text calls backward: all of its methods meet the objects that are prepared then."""
        if self._trains is None:
            self._trains = b".backward(" in self.module.text(self.node)
        return self._trains

    @property
    def bases(self) -> Values:
        """Everything that it may derive from directly."""
        return NOTHING.union(*self.parents)

    @property
    def is_open(self) -> bool:
        """Whether some base, of its own or of a base, is not known yet."""
        return any(not all(cls.parents) for cls in self.mro())

    def mro(self) -> list[Class]:
        """The classes of the project in which attributes are looked up, in Python's order."""
        if self._order is None:
            self._order = _linearised(self, ())
        return self._order

    def is_related(self, other: Class) -> bool:
        """Whether an object of one may be one of the other: they are one, or one derives from the other."""
        return self in other.mro() or other in self.mro()

    def sets(self, name: str) -> bool:
        """Whether its text sets that attribute of some object; most names are not even followed by anything like it."""
        if self._sets is None:
            if not re.search(rb"\.%s\s*(?:[^\s\w(.[]|in\b)" % re.escape(name.encode()), self.module.text(self.node)):
                return False
            self._sets = frozenset(set_attributes(self.node))
        return name in self._sets

    def derive(self, parents: tuple[Values, ...]) -> bool:
        """Join what the bases may be; whether that was news. Classes that derive from it have to `forget`."""
        joined = tuple(map(frozenset.union, self.parents, parents)) if self.parents else parents
        if joined == self.parents:
            return False
        self.parents = joined
        self.forget()
        return True

    def forget(self) -> None:
        """A class above it has changed."""
        self._order = self._libraries = None

    def lookup(self, name: str) -> Values:
        """A class attribute or method, through the bases of the project."""
        return next((cls.names[name] for cls in self.mro() if name in cls.names), NOTHING)

    def constructors(self) -> list[Function]:
        """What a call of it enters: an `__init__`, or a `__post_init__` if it is made of fields."""
        inits = self.lookup("__init__") or self.lookup("__post_init__")
        units = [value.unit for value in inits if isinstance(value.unit, Function)]
        return sorted((unit for unit in units if unit.sets_up), key=lambda unit: (unit.module.path, unit.node.lineno))

    def library_bases(self) -> frozenset[str]:
        """The dotted names of the library classes it derives from, directly or not."""
        if self._libraries is None:
            found = {base.name for cls in self.mro() for base in cls.bases if base.unit is None and base.name}
            self._libraries = frozenset(found)
        return self._libraries


def _linearised(cls: Class, seen: tuple[Class, ...]) -> list[Class]:
    """The C3 order; where there is none, and where a base may be several classes, from left to right."""
    if not cls.parents:
        return [cls]
    if cls in seen:
        return []
    lines = [_linearised(base, (*seen, cls)) for values in cls.parents for base in _classes(values)]
    lines.append([line[0] for line in lines if line])
    order = [cls]
    while lines := [line for line in lines if line]:
        heads = [line[0] for line in lines]
        head = next((h for h in heads if not any(h in line[1:] for line in lines)), heads[0])
        order.append(head)
        lines = [[other for other in line if other is not head] for line in lines]
    return order


def _classes(values: Values) -> list[Class]:
    found = {value.unit for value in values if isinstance(value.unit, Class)}
    return sorted(found, key=lambda cls: (cls.module.path, cls.node.lineno))


def entered(called: Values) -> tuple[Function, ...]:
    """The functions, constructors and `__call__` that a call of some values may enter, in the order of their files."""
    found: dict[Function, None] = {}
    for value in called:
        if isinstance(value.unit, Function):
            found[value.unit] = None
        elif isinstance(value.unit, Class) and value.role is Role.CLASS:
            found.update(dict.fromkeys(value.unit.constructors()))
        elif isinstance(value.unit, Class) and value.role is Role.INSTANCE:
            members = value.unit.lookup("__call__")
            found.update((member.unit, None) for member in members if isinstance(member.unit, Function))
    return tuple(sorted(found, key=lambda unit: (unit.module.path, unit.node.lineno, unit.node.col_offset)))


Unit: TypeAlias = "Module | Function"


def module_of(unit: Unit) -> Module:
    """The module a unit belongs to."""
    return unit if isinstance(unit, Module) else unit.module


def is_local(unit: Unit, name: str) -> bool:
    """Whether a function, or one around it, has a name of its own."""
    return name in locals_of(unit)


def locals_of(unit: Unit) -> set[str]:
    """The names that a function, and those around it, have of their own."""
    above = unit if isinstance(unit, Function) else None
    found: set[str] = set()
    while above is not None:
        found.update(above.names, above.parameter_names)
        above = above.parent
    return found
