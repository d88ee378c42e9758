"""What the interpreter knows so far: one growing picture of the program. Everything in it only ever grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from migrate.analysis.agenda import Agenda
from migrate.analysis.known import TABLES, Tables
from migrate.analysis.roles import NOTHING, ROWS, Role, Value, Values
from migrate.analysis.units import Class, Function, FunctionNode, Module, Unit
from migrate.analysis.widening import ANYTHING, join, united, widened

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection, Mapping

    from migrate.analysis.syntax import Loop
    from migrate.source.project import Project, SourceFile

ELEMENT = "*"  # the key under which the elements of unknown position are kept
_ALL, _PARAMETERS, _DEFAULTS, _RESULT = "<all>", "<parameters>", "<defaults>", "<result>"  # keys of the agenda
BASES = "<bases>"  # key of the agenda: what a class derives from
ANY = "<any>"  # in a text or a dotted name: what is not known of it
MAPPING = "mapping"  # the name of containers that are iterated by key
_ITERATED = frozenset({Role.ITERATOR, Role.CONTAINER})
#: Objects that may run over a loader.
_RUNNING = frozenset({Role.ITERATOR, Role.CONTAINER, Role.INSTANCE})
MIXED = "<mixed>"  # under this key: that what a list holds may not be any more where it was
KEYS = "<keys>"  # under this key: the list or dictionary of which a dictionary has the keys
SHORTENED = "<shortened>"  # under this key: that a dictionary may lack one of its keys by now
OVER = "<over>"  # what an iterator runs over, what an optimizer trains, what a loader reads


_TENSOR = Value(Role.TENSOR)
_EMPTY: Mapping[str, Values] = {}


def kept(values: Values) -> Values:
    """What objects, parameters and results keep of values: of a tensor only that it is one, not where it is made."""
    for value in values:
        if value.role is Role.TENSOR:
            return frozenset(_TENSOR if each.role is Role.TENSOR else each for each in values)
    return values


@dataclass(slots=True)
class Binding:
    """One statement that gives a name or attribute a value."""

    unit: Unit
    target: str  # as written: "model", "self.model"
    statement: ast.stmt
    values: Values


@dataclass(eq=False, slots=True)
class Round:
    """One round of a loop or comprehension over keys that are written out (see `rounds`)."""

    node: ast.AST
    key: str
    unit: Unit  # that runs it
    outer: Round | None  # the round in which it is run


@dataclass(slots=True)
class Frame:
    """A unit being run, with the names as they are at this point of it."""

    unit: Unit
    names: dict[str, Values]
    shared: dict[str, Unit] = field(default_factory=dict)  # declared `global` or `nonlocal` → where they live
    statement: ast.stmt | None = None
    missed: set[str] = field(default_factory=set)  # read where they had no value
    ended: bool = False  # the last statement does not go on to the next one
    left: list[dict[str, Values]] = field(default_factory=list)  # the names at each `break` of the running loop
    again: list[dict[str, Values]] = field(default_factory=list)  # the names at each `continue` of it
    around: Frame | None = None  # of a comprehension: where it stands
    is_sure: bool = True  # the running expression is evaluated whenever its statement is run
    seen: dict[str, Values] | None = None  # in a `try`: what its names may be where an exception leaves it
    is_leaving: bool = False  # in a `finally`, as it is where an exception or a `return` goes on
    round: Round | None = None  # the running one
    keys: dict[str, str] = field(default_factory=dict)  # the names of keys, in the running round

    def look_out(self, names: dict[str, Values]) -> None:
        """An exception may leave the running `try`, if there is one, with these names."""
        if self.seen is not None:
            for name, values in names.items():
                old = self.seen.get(name)
                if old is not values:
                    self.seen[name] = values if old is None else old | values


@dataclass(slots=True)
class State:
    """Values of expressions, contents of objects, and the units they were found in."""

    project: Project
    known: Tables = TABLES
    modules: dict[str, Module] = field(default_factory=dict)
    functions: dict[FunctionNode, Function] = field(default_factory=dict)
    classes: dict[ast.ClassDef, Class] = field(default_factory=dict)
    copies: dict[tuple[FunctionNode, ast.Call | None, Function | None], Function] = field(default_factory=dict)
    twins: dict[tuple[ast.expr, Unit | Class | Round], ast.expr] = field(default_factory=dict)  # see `factories`
    rounds: dict[tuple[ast.AST, str, Unit | Round], Round] = field(default_factory=dict)
    first_classes: dict[ast.expr, Class] = field(default_factory=dict)  # the first that a call makes objects of
    originals: dict[ast.AST, ast.expr | ast.arg] = field(default_factory=dict)  # a twin → what it is a twin of
    entered: dict[tuple[ast.Call, Unit, FunctionNode], Function] = field(default_factory=dict)  # what calls enter
    handed: dict[tuple[ast.Call, Unit], dict[Function, Values]] = field(default_factory=dict)  # all that they pass on
    values: dict[ast.expr, Values] = field(default_factory=dict)
    calls: dict[ast.Call, Unit] = field(default_factory=dict)  # those that were run, with what they stand in
    loops: dict[Loop, Unit] = field(default_factory=dict)
    homes: dict[ast.AST, Unit] = field(default_factory=dict)  # what was made, with the unit that made it
    heap: dict[ast.AST, dict[str, Values]] = field(default_factory=dict)
    unfilled: dict[ast.AST, dict[str, None]] = field(default_factory=dict)  # keys of what is not known
    bindings: dict[tuple[int, str, ast.stmt], Binding] = field(default_factory=dict)
    agenda: Agenda = field(init=False)
    reads: dict[ast.expr, frozenset[str]] = field(default_factory=dict)  # names in an expression, as far as asked for
    broken: dict[str, Exception] = field(default_factory=dict)  # path of a file → what went wrong in its analysis
    _unreadable: set[str] = field(default_factory=set)
    _settled: bool = False

    def module(self, file: SourceFile) -> Module | None:
        """The module of a file; None for a file that does not parse."""
        key = str(file.real or file.path)
        if key not in self.modules:
            if file.error is not None:
                self._unreadable.add(key)
                return None
            self.modules[key] = Module(file, file.tree)
            self.agenda.add(self.modules[key])
        return self.modules[key]

    def has(self, file: SourceFile) -> bool:
        """Whether a file was read, or cannot be."""
        key = str(file.real or file.path)
        return key in self.modules or key in self._unreadable

    @property
    def settled(self) -> bool:
        """Whether what is still unknown is unknown for good: only then unknown calls make objects."""
        self.agenda.wait_for_rest()
        return self._settled

    def settle(self) -> None:
        """From here on what is not known stays so; whoever met something unknown is run again."""
        self._settled = True
        self.agenda.rest()

    def record(self, node: ast.expr, values: Values) -> Values:
        """Join values into what the expression may be."""
        old = self.values.get(node)
        if old is None:
            self.values[node] = values
        elif old is not values and not values <= old:
            self.values[node] = widened(old, values)
        return values

    # --- objects ----------------------------------------------------------------------------------------------------

    def load(self, owner: ast.AST, key: str) -> Values:
        """What an object holds under a key."""
        self.agenda.read((owner, key))
        holding = self.heap.get(owner)
        return holding.get(key, NOTHING) if holding is not None else NOTHING

    def held(self, owner: ast.AST) -> dict[str, Values]:
        """Everything an object holds."""
        return dict(self.holding(owner))

    def holding(self, owner: ast.AST) -> Mapping[str, Values]:
        """The same for those who store nothing while they look at it."""
        self.agenda.read((owner, _ALL))
        return self.heap.get(owner, _EMPTY)

    def elsewhere(self, unit: Unit, name: str, values: Values) -> None:
        """Join values into a name of a unit from outside of it: `global`, `nonlocal`, `module.name = x`."""
        if name not in unit.elsewhere:
            unit.elsewhere.add(name)
            self.agenda.add(unit)
        self.name(unit, name, values)

    def store(self, owner: ast.AST | None, key: str, values: Values) -> None:
        """Put values into an object; nothing is ever taken out."""
        if owner is None or not values:
            return
        holding = self.heap.setdefault(owner, {})
        old = holding.get(key, NOTHING)
        if not values <= old and ANYTHING not in old and not (values := kept(values)) <= old:
            holding[key] = widened(old, values)
            self.agenda.news((owner, key), partial(self._is_fresh, owner))
            self.agenda.news((owner, _ALL), partial(self._is_fresh, owner))

    def _is_fresh(self, owner: ast.AST, unit: Unit) -> bool:
        """Whether an object is new each time a unit runs: the unit runs once, makes it, or sets it up."""
        if isinstance(unit, Module):
            return True
        if any(call.caller is unit.original for call in unit.original.calls.values()):
            return False  # it calls itself
        if unit.sets_up and unit.positional:
            if any(value.origin is owner for value in unit.parameters.get(unit.positional[0].arg, NOTHING)):
                return True
        home = self.homes.get(owner)
        return home is not None and home.original is unit.original

    def copy(self, source: ast.AST, target: ast.AST) -> None:
        """Put everything that one object holds into another: {**a}, a.update(b)."""
        known = self.heap.get(target, _EMPTY)
        for key, values in self.held(source).items():
            if known.get(key) is not values:
                self.store(target, key, values)

    # --- names ------------------------------------------------------------------------------------------------------

    def bind(self, frame: Frame, target: str, values: Values) -> None:
        """Remember that the running statement gave `target` these values."""
        assert frame.statement is not None
        unit = frame.unit.original
        key = (id(unit), target, frame.statement)
        binding = self.bindings.get(key)
        if binding is None:
            self.bindings[key] = Binding(unit, target, frame.statement, values)
        else:
            binding.values |= values

    def name(self, unit: Unit | Class, name: str, values: Values) -> None:
        """Join values into a name of a unit or class, as others see it."""
        if join(unit.names, name, values):
            self.agenda.news((id(unit), name))
            self.agenda.news((id(unit), _ALL))

    def look(self, unit: Unit | Class, name: str) -> Values | None:
        """What others see under a name of a unit or class; None if it has no such name."""
        self.agenda.read((id(unit), name))
        return unit.names.get(name)

    def names_of(self, unit: Unit | Class) -> dict[str, Values]:
        """Every name of a unit or class, as others see it."""
        self.agenda.read((id(unit), _ALL))
        return dict(unit.names)

    def member(self, cls: Class, name: str, after: Class | None = None) -> Values:
        """A class attribute or method, through the bases; `after`: as `super()` in that class finds it."""
        self.agenda.read((id(cls), BASES))
        order = cls.mro()
        if after is not None:
            order = order[order.index(after) + 1 :] if after in order else []
        for other in order:
            if (found := self.look(other, name)) is not None:
                return found
        return NOTHING

    def derive(self, cls: Class, parents: tuple[Values, ...]) -> None:
        """Join what the bases of a class may be."""
        is_first = not cls.parents
        if not cls.derive(parents):
            return
        for other in (cls,) if is_first else tuple(self.classes.values()):  # nothing derives from a class that is new
            if other is cls or cls in other.mro():
                other.forget()
                self.agenda.news((id(other), BASES))

    # --- functions --------------------------------------------------------------------------------------------------

    def join_parameter(self, function: Function, name: str, values: Values) -> None:
        """Join values into a parameter of a function; one that has been run is run again if that was news."""
        if values and join(function.parameters, name, kept(values)):
            self.agenda.news((id(function), _PARAMETERS))

    def join_default(self, function: Function, name: str, values: Values) -> None:
        """Join values into a default of a function, and so into its parameter."""
        if join(function.defaults, name, values):
            self.agenda.news((id(function), _DEFAULTS))
        self.join_parameter(function, name, values)

    def defaults(self, function: Function) -> Values:
        """What the defaults of a function may be."""
        self.agenda.read((id(function), _DEFAULTS))
        return NOTHING.union(*function.defaults.values())

    def parameter(self, function: Function, name: str) -> Values:
        """What a parameter may be."""
        self.agenda.read((id(function), _PARAMETERS))
        return function.parameters.get(name, NOTHING)

    def parameters(self, function: Function) -> Values:
        """What all its parameters may be."""
        self.agenda.read((id(function), _PARAMETERS))
        return NOTHING.union(*function.parameters.values())

    def enter(self, function: Function) -> None:
        """A function is called, so its body is to be run."""
        if not self.agenda.is_met(function):
            self.agenda.add(function)

    def give(self, function: Function, returned: Values, yielded: Values = NOTHING) -> None:
        """Join values into what a function gives."""
        if (returned := kept(returned)) <= function.returns and yielded <= function.yields:
            return
        known = function.returns, function.yields
        function.returns, function.yields = united(function.returns, returned), united(function.yields, yielded)
        if (function.returns, function.yields) != known:
            self.agenda.news((id(function), _RESULT))

    def result(self, function: Function) -> Values:
        """What a function returns, as far as it can be known now."""
        self.agenda.demand(function)
        self.agenda.read((id(function), _RESULT))
        return function.returns

    def iterated(self, given: Collection[Value]) -> Values:
        """What iterating over the values gives."""
        found: set[Value] = set()
        for value in given:
            if value.role in (Role.LOADER, Role.FEED):
                found.add(Value(Role.BATCH, value.origin))
            elif value.role in (Role.BATCH, Role.SAMPLES, Role.PARAMETERS):
                found.add(value)
            elif value.origin is not None and value.role in _ITERATED and value.name != MAPPING:  # that gives its keys
                for key, values in self.held(value.origin).items():
                    if key == ELEMENT or key.isdigit():
                        found |= values
        if not any(value.role in ROWS for value in found):  # `y.tolist()`; else what is run over is rows all the same
            found.update(value for value in given if value.role is Role.STATISTIC)
        return frozenset(found)

    def loaders(self, values: Values, depth: int = 4) -> Values:
        """The loaders behind the values: themselves, or what their iterators run over."""
        found: set[Value] = set()
        for value in values:
            if value.role is Role.LOADER:
                found.add(value)
            elif value.role in _RUNNING and value.origin is not None and depth:
                found |= self.loaders(self.load(value.origin, OVER), depth - 1)
        return frozenset(found)
