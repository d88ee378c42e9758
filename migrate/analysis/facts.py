"""The frozen answer of the analysis and the questions that rules ask of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

from migrate.analysis.expressions import constant
from migrate.analysis.handing import entries
from migrate.analysis.known import tensors
from migrate.analysis.reach import Reach
from migrate.analysis.roles import NOTHING, Role, Value, Values, origins
from migrate.analysis.signatures import Signatures
from migrate.analysis.singles import Singles
from migrate.analysis.state import OVER, Binding, State
from migrate.analysis.syntax import Loop, Tree, own_nodes
from migrate.analysis.units import Call, Class, Function, Module, Unit, entered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from migrate.analysis.known.table import Row
    from migrate.analysis.nodes import Nodes
    from migrate.source.project import Project, SourceFile

_Made = TypeVar("_Made")
_Node = TypeVar("_Node", ast.Call, Loop)


@dataclass(frozen=True, slots=True)
class Use:
    """A call, with the unit in whose code it stands."""

    node: ast.Call
    unit: Unit


class Facts:
    """What each expression of the program is, where it stands, who calls whom."""

    def __init__(self, project: Project, state: State) -> None:
        self.project = project
        self.cut_short = sorted({unit.module.path for unit in state.agenda.cut_short})  # files that reached the bound
        self.broken = dict(state.broken)  # paths of files whose analysis failed, with our bug
        self.known = state.known  # of libraries, also by what the program does with what they make
        self._state = state
        self.modules = tuple(state.modules.values())
        self.editable = tuple(module for module in self.modules if module.file.named)
        self.reach = Reach(self.modules)
        self._made: dict[Callable[[Facts], object], object] = {}
        self._named: dict[ast.expr, frozenset[str]] = {}
        self._trees: dict[Module, Tree] = {}
        self._targets: dict[ast.Call, tuple[Function, ...]] = {}
        self._values: dict[ast.AST, Values] = {}
        self._tree_of: dict[ast.AST, Tree] = {}
        self._unit_of: dict[ast.AST, Unit] = {}
        self._units: dict[ast.AST, Unit] = {module.tree: module for module in self.modules}
        self._units.update({unit.node: unit for unit in state.functions.values()})

    # --- places -----------------------------------------------------------------------------------------------------

    def tree(self, node: ast.AST) -> Tree:
        """The tree a node stands in."""
        if isinstance(node, ast.Module):
            return self.tree_of(self._module_of[node])
        for module in self.modules if node not in self._tree_of else ():  # made one by one: most are never asked for
            if module not in self._trees and node in self.tree_of(module):
                break
        return self._tree_of[node]

    def tree_of(self, module: Module) -> Tree:
        """The tree of a module."""
        if module not in self._trees:
            tree = self._trees[module] = Tree(module.tree)
            self._tree_of.update(dict.fromkeys(tree.nodes, tree))
            for made, node in self._state.originals.items():
                if node in tree:
                    tree.parents[made] = tree.parents[node]
                    self._tree_of[made] = tree
        return self._trees[module]

    def unit(self, node: ast.AST) -> Unit:
        """The function or module whose code the node is."""
        if isinstance(node, ast.Module):
            return self.module(node)
        if node not in self._unit_of:
            tree = self.tree(node)
            inner = tree.function(node)
            while inner not in self._units:  # a function that was never defined, in code that is not reached
                inner = tree.function(inner)
            self._unit_of[node] = self._units[inner]
        return self._unit_of[node]

    def function(self, definition: ast.AST) -> Function | None:
        """The function that a definition makes; None for another node, and for a definition that is never reached."""
        unit = self._units.get(definition)
        return unit if isinstance(unit, Function) else None

    def module(self, node: ast.AST) -> Module:
        """The module a node stands in."""
        return self._module_of[self.tree(node).root]

    @cached_property
    def _module_of(self) -> dict[ast.Module, Module]:
        return {module.tree: module for module in self.modules}

    def imported(self, module: Module) -> frozenset[Module]:
        """The module, those of the project that it imports or has values of, those that they import, and so on."""
        return self.reach.of(module)

    def are_near(self, one: Module, other: Module) -> bool:
        """Whether one of two files leads to the other."""
        return other in self.imported(one) or one in self.imported(other)

    def once(self, make: Callable[[Facts], _Made]) -> _Made:
        """What a class or function makes of these facts alone: made when it is first asked for, and kept."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("_Made", self._made[make])

    def holds(self, node: ast.AST) -> bool:
        """Whether a node stands in one of the files."""
        return any(node in self.tree_of(module) for module in self.modules)

    def file(self, node: ast.AST) -> SourceFile:
        """The file a node stands in."""
        return self.module(node).file

    def is_editable(self, unit: Unit) -> bool:
        """Whether the unit stands in a file that was named."""
        return (unit if isinstance(unit, Module) else unit.module).file.named

    @property
    def functions(self) -> tuple[Function, ...]:
        """Every function of the program."""
        return tuple(self._state.functions.values())

    @property
    def units(self) -> tuple[Unit, ...]:
        """Modules, then functions."""
        return (*self.modules, *self.functions)

    def was_run(self, unit: Unit) -> bool:
        """Whether the analysis looked into a unit; it does not where nothing has to do with training."""
        return self._state.agenda.is_met(unit)

    # --- values -----------------------------------------------------------------------------------------------------

    def values(self, node: ast.AST) -> Values:
        """What an expression may be; empty: unknown. Of a twin (see `factories`): what is made there."""
        if (known := self._values.get(node)) is None:
            known = self._values[node] = self._found(node)
        return known

    def _found(self, node: ast.AST) -> Values:
        if isinstance(node, ast.Constant):
            return constant(node.value)
        if not isinstance(node, ast.expr):
            return NOTHING
        source = self._state.originals.get(node)
        if source is not None:
            return frozenset(value for value in self.values(source) if value.origin is node)
        return self._state.values.get(node, NOTHING)

    def twins(self, origin: ast.AST) -> list[ast.AST]:
        """Where an object is made: the node in the source, then those that stand for what further calls make there."""
        source = self.source(origin)
        return [source, *(made for made, node in self._state.originals.items() if node is source)]

    def source(self, origin: ast.AST) -> ast.AST:
        """The node in the source of where an object is made."""
        return self._state.originals.get(origin, origin)

    def over(self, origin: ast.AST) -> Values:
        """What the optimizer, scheduler, loader or iterator made there works on."""
        return self._state.load(origin, OVER)

    def held(self, origin: ast.AST, key: str) -> Values:
        """What an object holds under an attribute or key."""
        return self._state.load(origin, key)

    def holding(self, origin: ast.AST) -> dict[str, Values]:
        """Everything that an object holds, by attribute or key."""
        return {key: values for key, values in self._state.held(origin).items() if key[:1] != "<"}

    def inside(self, values: Values, role: Role, depth: int = 3) -> set[ast.AST]:
        """Where the objects of a role were made that lie in lists, tuples and dictionaries."""
        found: set[ast.AST] = set()
        for value in values if depth else ():
            if value.role is Role.CONTAINER and value.origin is not None:
                for key, inner in self._state.held(value.origin).items():
                    if key[:1] != "<":
                        found |= origins(inner, role) | self.inside(inner, role, depth - 1)
        return found

    def parts(self, owners: Iterable[ast.AST], depth: int = 6) -> set[ast.AST]:
        """Where the models were made that are attributes of models, or lie in their lists; and the parts of those."""
        found, outer = set[ast.AST](), set(owners)
        for _ in range(depth):
            held = (values for owner in outer for values in self._state.held(owner).values())
            outer = set().union(*(origins(values, Role.MODEL, Role.CONTAINER) for values in held)) - found
            found |= outer
        return found

    def loaders(self, values: Values) -> set[ast.AST]:
        """Where the loaders behind an iterable were made."""
        return origins(self._state.loaders(values), Role.LOADER)

    def names(self, node: ast.expr) -> frozenset[str]:
        """The dotted library names an expression may mean."""
        if (known := self._named.get(node)) is None:
            known = self._named[node] = frozenset(v.name for v in self.values(node) if v.role is Role.KNOWN)
        return known

    def called(self, node: ast.Call) -> frozenset[str]:
        """The dotted library names a call may call."""
        known = self._named.get(node.func)
        return self.names(node.func) if known is None else known

    def targets(self, node: ast.Call) -> tuple[Function, ...]:
        """The project's functions, constructors and `__call__` a call may enter, in the order of their files."""
        known = self._targets.get(node)
        if known is None:
            known = self._targets[node] = entered(self.values(node.func))
        return known

    @cached_property
    def models_of(self) -> dict[ast.AST, set[ast.AST]]:
        """Where each optimizer was made → where the models it trains were made."""
        return {
            value.origin: self._trained(self.over(value.origin), 4)
            for values in list(self._state.values.values())
            for value in values
            if value.role is Role.OPTIMIZER and value.origin is not None
        }

    def _trained(self, values: Values, depth: int) -> set[ast.AST]:
        found: set[ast.AST] = set()
        for value in values:
            if value.origin is None:
                continue
            if value.role in (Role.PARAMETERS, Role.MODEL):
                found.add(value.origin)
            elif value.role in (Role.CONTAINER, Role.ITERATOR) and depth:
                for inner in self._state.held(value.origin).values():
                    found |= self._trained(inner, depth - 1)
        return found

    # --- calls ------------------------------------------------------------------------------------------------------

    @cached_property
    def calls(self) -> tuple[Use, ...]:
        """Every call in the files that may be edited, in source order."""
        return tuple(use for use in self.calls_anywhere if use.unit.module.file.named)

    @cached_property
    def calls_anywhere(self) -> tuple[Use, ...]:
        """Every call of the program, those of files that are only read included."""
        return tuple(Use(node, unit) for node, unit in self._in_order(self._state.calls))

    @cached_property
    def loops(self) -> tuple[tuple[Loop, Unit], ...]:
        """Every loop of the program with its unit, in source order."""
        return tuple(self._in_order(self._state.loops))

    def _in_order(self, found: dict[_Node, Unit]) -> list[tuple[_Node, Unit]]:
        """Module by module, from top to bottom; what stands around something comes before it."""
        apart: dict[Module, list[tuple[_Node, Unit]]] = {module: [] for module in self.modules}
        for item in found.items():
            apart[item[1].module].append(item)
        for items in apart.values():
            items.sort(key=_place)
        return [item for items in apart.values() for item in items]

    @cached_property
    def _by_name(self) -> dict[str, list[Use]]:
        found: dict[str, list[Use]] = {}
        for use in self.calls:
            for name in self.called(use.node):
                found.setdefault(name, []).append(use)
        return found

    def calls_to(self, names: Iterable[str]) -> Iterator[Use]:
        """Calls of library functions, by their dotted names."""
        for name in names:
            yield from self._by_name.get(name, ())

    @cached_property
    def _by_method(self) -> dict[str, list[Use]]:
        found: dict[str, list[Use]] = {}
        for use in self.calls:
            func = use.node.func
            if isinstance(func, ast.Attribute) and not self.names(func.value):
                found.setdefault(func.attr, []).append(use)
        return found

    def method_calls(self, *names: str) -> Iterator[Use]:
        """Calls `x.name(...)` where x is not a library."""
        for name in names:
            yield from self._by_method.get(name, ())

    def receiver(self, node: ast.Call) -> Values:
        """What the method of a call is called on."""
        return self.values(node.func.value) if isinstance(node.func, ast.Attribute) else NOTHING

    def row(self, name: str) -> Row | None:
        """What the tables know of a dotted library name."""
        return self._state.known.row(name)

    def entries(self, decorator: ast.expr) -> set[str]:
        """The library functions that call what is decorated so."""
        return set(entries(self._state, decorator))

    def roles_of_bases(self, cls: Class) -> set[Role | None]:
        """The roles that a class of the project has from the library classes it derives from; None: of no role."""
        return {self._state.known.role_of_base(name) for name in cls.library_bases()}

    def callers(self, unit: Function) -> list[Call]:
        """The places that call a function of the project."""
        return list(unit.calls.values())

    @cached_property
    def signatures(self) -> Signatures:
        """Who calls whom with what, and whether that can change."""
        return Signatures(self)

    @cached_property
    def singles(self) -> Singles:
        """Which places make one object, and which make several."""
        return Singles(self, self._state)

    def callers_known(self, unit: Function) -> bool:
        """Whether every use of a function is a call that was seen."""
        return self.signatures.of(unit).callers_known

    # --- names ------------------------------------------------------------------------------------------------------

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """Every statement that gives a name or attribute a value, in source order of its file."""
        return tuple(sorted(self._state.bindings.values(), key=lambda binding: binding.statement.lineno))

    @cached_property
    def _bindings_of(self) -> dict[int, list[Binding]]:
        found: dict[int, list[Binding]] = {}
        for binding in self.bindings:
            found.setdefault(id(binding.unit), []).append(binding)
        return found

    def bindings_in(self, unit: Unit) -> list[Binding]:
        """The bindings of one unit."""
        return self._bindings_of.get(id(unit), [])

    @cached_property
    def _naming(self) -> dict[ast.AST, dict[Unit, None]]:
        """Where objects are made → the units that bind a name to them, in their order."""
        found: dict[ast.AST, dict[Unit, None]] = {}
        for unit in self.units:
            for binding in self.bindings_in(unit):
                for value in binding.values:
                    if value.origin is not None:
                        found.setdefault(value.origin, {})[unit] = None
        return found

    def units_naming(self, wanted: Iterable[ast.AST]) -> list[Unit]:
        """The units that bind a name to each of the objects, modules first."""
        several = [self._naming.get(origin, {}) for origin in wanted]
        return [unit for unit in several[0] if all(unit in other for other in several)] if several else []

    @cached_property
    def _nested(self) -> dict[Function, list[Function]]:
        found: dict[Function, list[Function]] = {}
        for unit in self.functions:
            if unit.parent is not None:
                found.setdefault(unit.parent, []).append(unit)
        return found

    def nested(self, unit: Unit) -> list[Function]:
        """The functions that are defined in a function."""
        return self._nested.get(unit, []) if isinstance(unit, Function) else []

    def own(self, unit: Unit) -> Nodes:
        """The nodes of a unit without nested functions."""
        return own_nodes(unit.tree if isinstance(unit, Module) else unit.node)

    def is_device(self, values: Values) -> bool:
        """Whether an expression is a device, or a text that names one."""
        return bool(values) and all(value.role is Role.DEVICE or _names_device(value) for value in values)


def _place(item: tuple[ast.expr | ast.stmt, Unit]) -> tuple[int, int, int, int]:
    node = item[0]
    return node.lineno, node.col_offset, -(node.end_lineno or 0), -(node.end_col_offset or 0)


def _names_device(value: Value) -> bool:
    """Whether it is a text such as cuda, cuda:0 or cpu, also with a number that is put in when the program runs."""
    return value.role is Role.TEXT and value.name.split(":", maxsplit=1)[0] in tensors.DEVICE_TEXT
