"""What gives a name, an attribute, a parameter or an element its value: places in the text, found after the analysis.

Nothing here is needed to find out what a value is. It is for those who ask afterwards how it came to where it is.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.syntax import DEFINITIONS, FUNCTIONS, own_nodes
from migrate.analysis.units import Class, Function, Module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value, Values
    from migrate.analysis.units import Call, Unit

#: Methods that put what they are given into the object they are called on.
_PUTTING = frozenset({"append", "add", "insert", "extend", "update", "setdefault", "appendleft"})
_OUTWARD = (b"global", b"nonlocal")  # the words with which a function binds a name that is not its own


class Binders:
    """The places of a program that bind something, indexed on the first question."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._of: dict[int, dict[str, list[ast.AST]]] = {}

    # --- names ------------------------------------------------------------------------------------------------------

    def of(self, unit: Unit) -> dict[str, list[ast.AST]]:
        """The places that bind each name of a unit: stored names, parameters, imports, definitions."""
        if id(unit) not in self._of:
            found: dict[str, list[ast.AST]] = {}
            for node in self._facts.own(unit):
                for name, binder in _bound(node):
                    found.setdefault(name, []).append(binder)
            for name, binder in self._from_inside.get(id(unit), ()):
                found.setdefault(name, []).append(binder)
            self._of[id(unit)] = found
        return self._of[id(unit)]

    @cached_property
    def _from_inside(self) -> dict[int, list[tuple[str, ast.AST]]]:
        """Names that a function binds for the module or the function around it: `global`, `nonlocal`."""
        found: dict[int, list[tuple[str, ast.AST]]] = {}
        outward = {module for module in self._facts.modules if any(word in module.file.content for word in _OUTWARD)}
        for function in (function for function in self._facts.functions if function.module in outward):
            own = list(self._facts.own(function))
            for node in own:
                if isinstance(node, (ast.Global, ast.Nonlocal)):
                    outer = function.parent if isinstance(node, ast.Nonlocal) else None
                    bound = [pair for each in own for pair in _bound(each) if pair[0] in node.names]
                    found.setdefault(id(outer or function.module), []).extend(bound)
        return found

    def visible(self, node: ast.AST, name: str) -> Iterator[list[ast.AST]]:
        """The binders of a name as seen from a node, scope by scope outwards; in its own the last before it first."""
        unit: Unit | None = self._facts.unit(node)
        line = getattr(node, "lineno", 0)
        while unit is not None:
            if found := self.of(unit).get(name):
                yield sorted(found, key=lambda each: _distance(each, line))
            line = 10**9  # further out the last one counts
            unit = _outer(unit)

    def exported(self, module: Module, name: str) -> list[ast.AST]:
        """The binders of a module's own name, those behind `from x import *` included."""
        names = self.of(module)
        return list(reversed(names.get(name, []))) or names.get("*", [])

    def imported(self, alias: ast.alias) -> tuple[Module | None, str]:
        """The module of the project that an import reads, and the name it takes (empty: the module itself)."""
        statement = self._facts.tree(alias).parents[alias]
        file = self._facts.file(alias)
        if isinstance(statement, ast.ImportFrom):
            found = self._facts.project.resolve(statement.module or "", statement.level, file)
            inner = self._module(found)
            return inner, "" if inner is None else alias.name
        return self._module(self._facts.project.resolve(alias.name, 0, file)), ""

    def imports(self, module: Module) -> set[Module]:
        """The modules of the project that a module imports, anywhere in it."""
        found: set[Module | None] = set()
        for node in self._facts.tree(module.tree).nodes:
            if isinstance(node, ast.alias):
                inner, name = self.imported(node)
                found.add(inner)
                if name and inner is not None and name not in self.of(inner):  # from package import module
                    found.add(self._module(self._facts.project.resolve(name, 1, inner.file)))
        return {each for each in found if each is not None}

    def _module(self, file: object) -> Module | None:
        return next((module for module in self._facts.modules if module.file is file), None) if file else None

    # --- attributes and elements ------------------------------------------------------------------------------------

    @cached_property
    def _stores(self) -> dict[str, list[ast.Attribute]]:
        found: dict[str, list[ast.Attribute]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.setdefault(node.attr, []).append(node)
        return found

    @cached_property
    def _nodes(self) -> tuple[ast.AST, ...]:
        return tuple(node for module in self._facts.modules for node in self._facts.tree(module.tree).nodes)

    def stores(self, attribute: str, owners: Values) -> list[ast.Attribute]:
        """The places that set an attribute of any of these objects."""
        made = {owner.origin for owner in owners} - {None}
        return [node for node in self._stores.get(attribute, ()) if self._is_of(node.value, made)]

    def members(self, attribute: str, owners: Values) -> list[ast.AST]:
        """The places in the bodies of classes, and of their bases in the project, that define an attribute."""
        found: list[ast.AST] = []
        waiting = [owner.unit for owner in owners if isinstance(owner.unit, Class)]
        seen: set[int] = set()
        while waiting:
            cls = waiting.pop(0)
            if id(cls) in seen:
                continue
            seen.add(id(cls))
            mine = [b for member in own_nodes(cls.node) for name, b in _bound(member) if name == attribute]
            found += mine
            if not mine:
                waiting += [base.unit for base in cls.bases if isinstance(base.unit, Class)]
        return found

    @cached_property
    def _puts(self) -> list[tuple[ast.expr, list[ast.expr], ast.AST]]:
        """(object, what is put into it, the place) of every `x[k] = v` and `x.append(v)`."""
        found: list[tuple[ast.expr, list[ast.expr], ast.AST]] = []
        for node in self._nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found.append((node.value, [], node))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PUTTING:
                found.append((node.func.value, arguments(node), node))
        return found

    def puts(self, origin: ast.AST) -> list[tuple[list[ast.expr], ast.AST]]:
        """What is put into the object made there, and where; of an assignment its target alone."""
        found = [(given, place) for owner, given, place in self._puts if self._is_of(owner, {origin})]
        every = (node for nodes in self._stores.values() for node in nodes)
        return found + [([], node) for node in every if self._is_of(node.value, {origin})]

    def _is_of(self, owner: ast.expr, made: set[ast.AST] | set[ast.AST | None]) -> bool:
        return any(value.origin in made for value in self._facts.values(owner))

    # --- parameters -------------------------------------------------------------------------------------------------

    def function(self, parameter: ast.arg) -> Function | None:
        """The function that has the parameter."""
        tree = self._facts.tree(parameter)
        return self._facts.function(next(above for above in tree.up(parameter) if isinstance(above, FUNCTIONS)))

    def callers(self, unit: Function) -> list[Call]:
        """The calls of a function, in source order."""
        return sorted(self._facts.callers(unit), key=lambda call: (call.caller.module.path, call.node.lineno))


def given(call: Call, unit: Function, parameter: ast.arg) -> list[ast.expr]:
    """The arguments of a call that may fill a parameter."""
    names = [each.arg for each in unit.positional]
    found = [keyword.value for keyword in call.keywords if keyword.arg in (parameter.arg, None)]
    own = unit.node.args
    if parameter is own.kwarg:
        return [k.value for k in call.keywords if k.arg not in names]
    starred = [each.value for each in call.args if isinstance(each, ast.Starred)]
    if parameter is own.vararg:
        further = [each for each in call.args[max(0, len(names) - call.bound) :] if each is not None]
        is_written = call.handed is None  # else a star may be one that stands in no file
        return [*(each for each in further if is_written or not isinstance(each, ast.Starred)), *starred]
    if parameter.arg in names:
        position = names.index(parameter.arg) - call.bound
        if 0 <= position < len(call.args) and not starred:
            passed = call.args[position]
            return found if passed is None else [passed, *found]
    return found + starred


def default(unit: Function, parameter: ast.arg) -> ast.expr | None:
    """The default of a parameter."""
    own = unit.node.args
    pairs = dict(zip(reversed(unit.positional), reversed(own.defaults), strict=False))
    pairs.update({name: value for name, value in zip(own.kwonlyargs, own.kw_defaults, strict=True) if value})
    return pairs.get(parameter)


def returned(unit: Function) -> list[tuple[ast.expr, ast.AST]]:
    """What a function returns, with the statement that does."""
    if isinstance(unit.node, ast.Lambda):
        return [(unit.node.body, unit.node.body)]
    own = own_nodes(unit.node)
    return [(node.value, node) for node in own if isinstance(node, ast.Return) and node.value is not None]


def yielded(unit: Function) -> list[ast.Yield | ast.YieldFrom]:
    """The places where a generator gives something."""
    return [node for node in own_nodes(unit.node) if isinstance(node, (ast.Yield, ast.YieldFrom))]


def arguments(call: ast.Call) -> list[ast.expr]:
    """Everything that is passed, without its stars."""
    positional = [each.value if isinstance(each, ast.Starred) else each for each in call.args]
    return [*positional, *(keyword.value for keyword in call.keywords)]


def holds(binder: ast.AST, value: Value, facts: Facts, binders: Binders) -> bool:
    """Whether a binder gives its name this value (True where that is not recorded: an import, a definition)."""
    if isinstance(binder, ast.expr):
        return value in facts.values(binder)
    if isinstance(binder, ast.arg):
        unit = binders.function(binder)
        return unit is not None and value in unit.parameters.get(binder.arg, frozenset())
    return not isinstance(binder, DEFINITIONS) or value.origin is binder


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node
    elif isinstance(node, ast.arg):
        yield node.arg, node
    elif isinstance(node, DEFINITIONS):
        yield node.name, node
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]), alias


def _outer(unit: Unit) -> Unit | None:
    if isinstance(unit, Function):
        return unit.parent or unit.module
    return None


def _distance(binder: ast.AST, line: int) -> tuple[bool, int]:
    """Binders above a line come first, the nearest of them at the front; then those below it."""
    there = getattr(binder, "lineno", 0)
    return there > line, abs(line - there)
