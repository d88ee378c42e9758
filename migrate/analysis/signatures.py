"""Whether the signature of a function can change, and which call sites must follow.

It can where every use is a call that was seen, that enters nothing else, and that says what it passes. Else there are
obstacles, each with its place, its reason and a way out.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.decorators import is_transparent
from migrate.analysis.exports import listed
from migrate.analysis.in_hand import are_in_hand
from migrate.analysis.known import decorators as known
from migrate.analysis.members import PLAIN, PROPERTIES, decorators
from migrate.analysis.partials import Partials, is_of_partial
from migrate.analysis.roles import Role, Value
from migrate.analysis.second_names import is_only_listed, is_second_name
from migrate.analysis.sites import Site, binding_site, site_of
from migrate.analysis.syntax import is_only_asked
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a signature must stay as it is."""

    node: ast.AST
    why: str  # as it goes on after "f() needs ..., and"
    way_out: str
    unnamed: str = ""  # the path of a file that would have to be named
    is_idle: bool = False  # nothing that was read calls the function


@dataclass(frozen=True, slots=True)
class Signature:
    """The uses of one function."""

    unit: Function
    sites: tuple[Site, ...]  # the calls that must follow
    values: tuple[ast.expr, ...]  # where it is used other than to call it
    exported: tuple[str, ...]  # the files that hand it on: by `__all__`, in a package, or without being named
    family: tuple[Function, ...]  # what it overrides, what overrides it, what its calls may enter; they change together
    obstacles: tuple[Obstacle, ...]

    @property
    def callers_known(self) -> bool:
        """Whether it is called, and every use that was read is a call."""
        return bool(self.sites) and not self.values

    @property
    def can_change(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.obstacles


class Signatures:
    """The signatures of the project's functions, each worked out when it is asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[Function, Signature] = {}
        self._in_hand: dict[Class, bool] = {}
        self._partials = Partials(facts)
        self._entering = _Entering()

    @cached_property
    def called_in_unread(self) -> dict[Function, str]:
        """Functions that are called by name in code that was not run, since nothing calls it; with such a place."""
        found: dict[Function, str] = {}
        for module in self._facts.modules:
            known = {name: values for name, values in module.names.items() if any(v.unit is not None for v in values)}
            for node in self._facts.tree_of(module).nodes if known else ():
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node not in self._run:
                    for value in known.get(node.func.id, ()):
                        if isinstance(value.unit, Function):
                            found[value.unit] = f"{module.path}:{node.lineno}"
        return found

    def of(self, unit: Function) -> Signature:
        """The signature of a function."""
        if unit not in self._known:
            family = tuple(self._family(unit))
            values = tuple(self._values.get(unit, ()))
            exported = tuple(self._exporters.get(unit, ()))
            obstacles = tuple(self._obstacles((unit, *family)))
            self._known[unit] = Signature(unit, self._sites(unit), values, exported, family, obstacles)
        return self._known[unit]

    def _obstacles(self, units: tuple[Function, ...]) -> Iterator[Obstacle]:
        """What stands in the way of a function, or of methods that have to change together."""
        first = units[0]
        for unit in units:
            yield from self._of_uses(unit)
        if not any(self._sites(unit) for unit in units):
            why = "not all of its callers are known: nothing that was read calls it"
            yield Obstacle(first.node, why, f"name the files that call {_called(first)}(), too", is_idle=True)
        for unit in units:
            if not self._are_alike(unit, first, units):
                name = f"{unit.owner.name}.{unit.name}" if unit.owner is not None else unit.name
                why = f"{name}() in {unit.module.path} has other parameters"
                yield Obstacle(first.node, why, f"give {name}() the same parameters")
            yield from self._of_class(unit)
            yield from self._of_decorators(unit)
        together = frozenset(units)
        for unit in units:
            for site in self._sites(unit):
                yield from self._of_site(unit, site, together)

    def _are_alike(self, unit: Function, first: Function, units: tuple[Function, ...]) -> bool:
        """Whether two methods have the same parameters; how they are named does not matter where none is passed so."""
        if [p.arg for p in unit.positional] == [p.arg for p in first.positional]:
            return True
        shapes = {(len(u.positional), len(u.node.args.defaults)) for u in (unit, first)}
        return len(shapes) == 1 and not any(site.call.node.keywords for u in units for site in self._sites(u))

    def _sites(self, unit: Function) -> tuple[Site, ...]:
        called = (site_of(call, unit) for call in unit.calls.values() if not is_of_partial(call))
        return (*called, *(binding_site(call, unit) for call in self._partials.of(unit)))

    # --- uses -------------------------------------------------------------------------------------------------------

    @cached_property
    def _values(self) -> dict[Function, list[ast.expr]]:
        """Where each function is read other than to call it; a class stands for its constructor."""
        found: dict[Function, list[ast.expr]] = {}
        for module in self._facts.modules:
            tree = self._facts.tree_of(module)
            for node in tree.nodes:
                if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
                    continue
                for value in self._facts.values(node):
                    unit = self._entering[value] if value.role in _CALLABLES else None
                    if unit is not None and not self._is_harmless(node, value.role, unit):
                        found.setdefault(unit, []).append(node)
        return found

    def _is_harmless(self, node: ast.expr, role: Role, unit: Function) -> bool:
        """Whether a read leads to no call that is not seen."""
        parents = self._facts.tree(node).parents
        parent = parents.get(node)
        handed, is_called = self._handed_over(unit), isinstance(parent, ast.Call) and parent.func is node
        if is_called or node in handed or parent in handed or is_only_asked(parents, node):
            return True
        tree = self._facts.tree(node)
        if is_second_name(tree, self._facts.unit(node), node) or is_only_listed(tree, node):
            return True
        if role is Role.CLASS and isinstance(parent, (ast.Attribute, ast.ClassDef, ast.ExceptHandler)):
            return not (isinstance(parent, ast.ClassDef) and node in parent.decorator_list)
        while isinstance(parent, ast.Tuple):
            parent = parents.get(parent)
        looking = known.LOOKING if role is not Role.CLASS else _COMPARING
        return isinstance(parent, ast.Call) and bool(self._facts.called(parent) & looking)

    def _handed_over(self, unit: Function) -> set[ast.AST]:
        """Where a function, or a list of functions, is handed to a library that is seen to call it."""
        handed = (call.handed for call in unit.calls.values() if call.handed is not None)
        return {each.function for each in handed if each.function is not None}

    @cached_property
    def _exporters(self) -> dict[Function, list[str]]:
        found: dict[Function, list[str]] = {}
        for module in self._facts.modules:
            names = listed(module.tree) or ()
            for name, values in module.names.items():
                for value in values:
                    unit = self._entering[value]
                    if unit is None:
                        continue
                    is_foreign = unit.module is not module and (module.is_package or not module.file.named)
                    if (is_foreign or name in names) and module.path not in found.setdefault(unit, []):
                        found[unit].append(module.path)
        return found

    def _of_uses(self, unit: Function) -> Iterator[Obstacle]:
        if values := [node for node in self._values.get(unit, ()) if node not in self._partials.functions]:
            first = min(values, key=lambda node: (self._facts.file(node).path, node.lineno))
            place = f"{self._facts.file(first).path}:{first.lineno}"
            why = f"not all of its callers are known: it is used as a value in {place}"
            yield Obstacle(unit.node, why, f"call {_called(unit)}() by its name")
        is_method = unit.owner is not None and not unit.sets_up
        call = self._unread.get((is_method, _called(unit)))
        if call is not None and not (is_method and self._is_in_hand(unit.owner)):
            place = f"{self._facts.file(call).path}:{call.lineno}"
            why = f"not all of its callers are known: the call in {place} is in code that nothing calls"
            yield Obstacle(unit.node, why, "take that code out")

    @cached_property
    def _run(self) -> frozenset[ast.AST]:
        """The calls in code that is run."""
        return frozenset(use.node for use in self._facts.calls_anywhere)

    def _is_in_hand(self, cls: Class | None) -> bool:
        if cls is not None and cls not in self._in_hand:
            self._in_hand[cls] = are_in_hand(self._facts, cls, self._run)
        return cls is not None and self._in_hand[cls]

    @cached_property
    def _unread(self) -> dict[tuple[bool, str], ast.Call]:
        """By name, and whether it is a method's, a call in a function that was not run, since nothing calls it."""
        found: dict[tuple[bool, str], ast.Call] = {}
        for module in self._facts.modules:
            for node in self._facts.tree_of(module).nodes:
                if not isinstance(node, ast.Call) or node in self._run:
                    continue
                if isinstance(node.func, ast.Name):
                    found.setdefault((False, node.func.id), node)
                elif isinstance(node.func, ast.Attribute):
                    owner = module.names.get(getattr(node.func.value, "id", ""), ())
                    is_method = not any(value.role is Role.MODULE for value in owner)
                    if not is_method or node.func.attr not in _OF_MODULE:  # of those, most are a model's
                        found.setdefault((is_method, node.func.attr), node)
        return found

    def _of_site(self, unit: Function, site: Site, units: frozenset[Function]) -> Iterator[Obstacle]:
        name, node = _called(unit), site.call.node
        if site.call.handed is not None:
            place = f"{self._facts.file(node).path}:{node.lineno}"
            why = f"{site.call.handed.by}() calls it with what it is given in {place}"
            yield Obstacle(node, why, f"call {name}() by its name")
            return
        if site.is_starred and not site.leaves_room(unit):
            way_out = f"write out the arguments of {name}() in this call"
            yield Obstacle(node, f"it is called with * or ** in line {node.lineno}", way_out)
        file = self._facts.file(node)
        if not file.named:
            why = f"it is called in {file.path}:{node.lineno}, which was not named"
            yield Obstacle(unit.node, why, "name that file too", file.path)
        if site.binds and not self._partials.leaves_room(unit):
            why = f"what is bound in {file.path}:{node.lineno} is called with more than it needs"
            yield Obstacle(node, why, f"pass by name what {name}() has defaults for")
        called = node.args[0] if site.binds else node.func
        others = [value for value in self._facts.values(called) if self._entering[value] not in units]
        if others:
            why = f"the call in {file.path}:{node.lineno} may enter something else, too"
            yield Obstacle(node, why, f"call {name}() by its name")

    # --- classes ----------------------------------------------------------------------------------------------------

    def _family(self, unit: Function) -> Iterator[Function]:
        """The functions that have to change with one, and those that have to change with these, too.

        They are the methods of the same name in the classes above and below, and what one call may enter.
        """
        found, waiting = {unit}, [unit]
        while waiting:
            member = waiting.pop()
            for other in (*self._overriding(member), *self._entered_with(member)):
                if other not in found:
                    found.add(other)
                    waiting.append(other)
                    yield other

    def _overriding(self, unit: Function) -> Iterator[Function]:
        """The methods that a method overrides or that override it."""
        if unit.owner is None or unit.sets_up:
            return
        for other in self._methods.get(unit.name, ()):
            if other.owner is not None and unit.owner.is_related(other.owner):
                yield other

    def _entered_with(self, unit: Function) -> Iterator[Function]:
        """What else its calls enter: another class's method, `agent.update(rollouts)`, or another file's function."""
        for call in unit.calls.values():
            if call.handed is not None:
                continue
            for value in self._facts.values(call.node.func):
                other = self._entering[value]
                if other is None or (other.owner is None) != (unit.owner is None):
                    continue
                if other.name == unit.name or (unit.owner is None and isinstance(call.node.func, ast.Name)):
                    yield other

    @cached_property
    def _methods(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for unit in self._facts.functions:
            if unit.owner is not None:
                found.setdefault(unit.name, []).append(unit)
        return found

    def _of_class(self, unit: Function) -> Iterator[Obstacle]:
        if unit.owner is None:
            return
        name = f"{unit.owner.name}.{unit.name}"
        if unit.name[:2] == unit.name[-2:] == "__" and unit.name not in ("__init__", "__call__"):
            yield Obstacle(unit.node, "Python calls it by itself", "move what it does into a method of another name")
        if decorators(unit) & PROPERTIES:
            yield Obstacle(unit.node, "it is a property, which is read and not called", f"make {name} a method")
        libraries = sorted(unit.owner.library_bases() - PLAIN)
        if libraries and unit.name != "__init__" and not _is_own(unit.name, libraries):
            yield Obstacle(unit.node, f"{libraries[0]} may call it", f"move what {name}() does into a function")

    # --- decorators -------------------------------------------------------------------------------------------------

    def _of_decorators(self, unit: Function) -> Iterator[Obstacle]:
        for decorator in getattr(unit.node, "decorator_list", ()):
            if entered_by := sorted(self._facts.entries(decorator)):
                why = f"it is called by {entered_by[0]}(), and with what is not up to the program"
                yield Obstacle(unit.node, why, f"move what {unit.name}() does into a function that it calls")
            elif not self._keeps(decorator, unit):
                text = ast.unparse(decorator)
                why = f"not all of its callers are known: it is decorated with @{text}"
                yield Obstacle(unit.node, why, f"take @{text} off {unit.name}()")

    def _keeps(self, decorator: ast.expr, unit: Function) -> bool:
        """Whether a decorator leaves the calls of a function what they are."""
        inner = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(inner, ast.Attribute) and inner.attr in ("setter", "deleter", "getter"):
            return True
        names = self._facts.names(inner)
        if names:
            return names <= known.KEEPING | _PROPERTY_NAMES
        given = self._facts.values(decorator)
        return bool(given) and all(is_transparent(value) for value in given)


_CALLABLES = frozenset({Role.FUNCTION, Role.METHOD, Role.CLASS})
_COMPARING = frozenset({"builtins.isinstance", "builtins.issubclass", "builtins.super", "builtins.hasattr"})
_PROPERTY_NAMES = frozenset({"builtins.property", "functools.cached_property", "abc.abstractproperty"})
#: What torch.nn.Module calls or expects of the classes that derive from it.
_OF_MODULE = frozenset(
    "forward train eval to cuda cpu apply parameters named_parameters state_dict load_state_dict zero_grad extra_repr "
    "requires_grad_ children modules named_children named_modules buffers named_buffers float half double".split()
)


_WRITERS = ("torch.utils.tensorboard.", "tensorboardX.")  # of event files


def _is_own(name: str, libraries: list[str]) -> bool:
    """Whether a method is none that the libraries' classes call."""
    if name[:1] != "_" and all(library.startswith(_WRITERS) for library in libraries):
        return not name.startswith(("add_", "flush", "close", "get_logdir", "export_scalars"))
    return all(library.startswith("torch.nn.") for library in libraries) and name not in _OF_MODULE


class _Entering(dict["Value", "Function | None"]):
    """By value: the function that calling it enters."""

    def __missing__(self, value: Value) -> Function | None:
        self[value] = _entered(value)
        return self[value]


def _entered(value: Value) -> Function | None:
    if isinstance(value.unit, Function):
        return value.unit
    if not isinstance(value.unit, Class):
        return None
    name = {Role.CLASS: "__init__", Role.MODEL: "forward"}.get(value.role, "__call__")
    return next((member.unit for member in value.unit.lookup(name) if isinstance(member.unit, Function)), None)


def _called(unit: Function) -> str:
    """What a call of the function is written with."""
    return unit.owner.name if unit.owner is not None and unit.name == "__init__" else unit.name
