"""What changes the things in an object: `losses.append(x)`, `table[key] = x`, `random.shuffle(rows)`, `self.x = x`."""

from __future__ import annotations

import ast
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments, own_nodes, targets_of, walk
from migrate.analysis.texts import text_of
from migrate.analysis.units import Function
from migrate.programs.values.kept import root_of
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import FunctionNode, Unit

Filling = ast.Call | ast.Assign | ast.AugAssign

#: What changes the things in a container.
_FILLING = frozenset(
    """append appendleft extend insert push add store remember save memorize update pop popleft popitem remove discard
    clear put update normal_ uniform_ random_ bernoulli_ copy_""".split()
)


_DEEPEST = 3  # names between an item and the dictionary


class Fillings:
    """The places of a program that change the things in its containers."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def of(self, node: ast.Name | ast.Attribute) -> Iterator[Filling]:
        """The places that change what a name or attribute holds, as far as they call it by that name."""
        for filling, into in self._found.get(_last(node), ()):
            if self._is_one(node, into):
                yield filling

    def of_items(self, node: ast.Name) -> Iterator[ast.Call]:
        """The places that change what an item of a container holds: `groups[key].append(x)`."""
        yield from (filling for filling, _, into in self._in_items.get(node.id, ()) if self._is_one(node, into))

    def keys(self, node: ast.Name) -> Iterator[tuple[ast.expr, bool]]:
        """The keys of the items of a container that are changed, and whether an item is made where there is none."""
        for filling, key, into in self._in_items.get(node.id, ()):
            if self._is_one(node, into):
                assert isinstance(filling.func, ast.Attribute)
                yield key, isinstance(filling.func.value, ast.Call)

    def items(self, node: ast.Subscript) -> list[ast.expr]:
        """What an item was given of a dictionary that is written out and not changed; nothing: it is not known."""
        made = self._made(node.value, _DEEPEST) if isinstance(node.slice, ast.Constant) else []
        found = [_item(each, node.slice) for each in made]
        return [] if None in found else [value for value in found if value is not None]

    def _made(self, node: ast.expr, depth: int) -> list[ast.Dict]:
        """The dictionaries that are written out for a name; nothing where it may be another one."""
        if isinstance(node, ast.Dict):
            return [node]
        if not isinstance(node, ast.Name) or not depth or any(True for _ in self.of(node)):
            return []
        given = self._facts.once(Sources).given(node)
        made = [self._made(each, depth - 1) for each in given.expressions]
        return [each for some in made for each in some] if given.complete and all(made) else []

    def _is_one(self, node: ast.expr, other: ast.expr) -> bool:
        """Whether two expressions that end in one name may be one object."""
        if isinstance(node, ast.Attribute) and isinstance(other, ast.Attribute):
            return self.may_be_one(node, other)
        if not isinstance(node, ast.Name) or not isinstance(other, ast.Name):
            return False
        facts = self._facts
        return facts.module(node) is facts.module(other) and self._scope(node) is self._scope(other)

    def may_be_one(self, node: ast.Attribute, other: ast.Attribute) -> bool:
        """Whether two attributes of one name may be of one object."""
        owners = [origins(self._facts.values(each.value), *Role) for each in (node, other)]
        return not all(owners) or bool(owners[0] & owners[1])

    def setting(self, node: ast.Attribute) -> Iterator[Binding]:
        """The statements that set an attribute of what may be the same object."""
        return (binding for binding, target in self._set.get(node.attr, ()) if self.may_be_one(node, target))

    @cached_property
    def _set(self) -> dict[str, list[tuple[Binding, ast.Attribute]]]:
        """The statements that set attributes, with the attribute, by its name."""
        found: dict[str, list[tuple[Binding, ast.Attribute]]] = {}
        for binding in self._facts.bindings:
            for node in walk(binding.statement) if "." in binding.target else ():
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    if text_of(node) == binding.target:
                        found.setdefault(node.attr, []).append((binding, node))
        return found

    def _scope(self, name: ast.Name) -> Unit:
        """The unit whose name it is."""
        unit = self._facts.unit(name)
        while isinstance(unit, Function) and not self._is_local(unit, name.id):
            unit = unit.parent or unit.module
        return unit

    def _is_local(self, unit: Function, name: str) -> bool:
        if name in unit.parameter_names:
            return True
        return not shares(unit, name) and any(b.target == name for b in self._facts.bindings_in(unit))

    @cached_property
    def _found(self) -> dict[str, list[tuple[Filling, ast.expr]]]:
        """What changes the things in a container, with the container, by the last part of its name."""
        found: dict[str, list[tuple[Filling, ast.expr]]] = {}
        for use in self._facts.calls_anywhere:
            call = use.node
            if isinstance(call.func, ast.Attribute) and call.func.attr in _FILLING and not self._only_reads(call):
                found.setdefault(_last(call.func.value), []).append((call, call.func.value))
            if any(name.endswith("shuffle") for name in self._facts.called(call)):
                for argument in call.args[:1]:
                    found.setdefault(_last(argument), []).append((call, argument))
        for module in self._facts.modules:
            for node in self._facts.tree_of(module).nodes:
                if isinstance(node, (ast.Assign, ast.AugAssign)):
                    for target in targets_of(node):
                        if isinstance(target, ast.Subscript):
                            container = _whole(target)
                            found.setdefault(_last(container), []).append((node, container))
        return found

    def _only_reads(self, call: ast.Call) -> bool:
        """`params.save(path)`: whether a method of the project only looks at its object."""
        units = self._facts.targets(call)
        return bool(units) and all(
            unit.itself is not None
            and not any(self._may_change(node, unit.itself.arg) for node in self._facts.own(unit))
            for unit in units
        )

    def _may_change(self, node: ast.AST, me: str) -> bool:
        """Whether code may change an object: sets something of it, calls it, or hands it to more than a library."""
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return not isinstance(node.ctx, ast.Load) and root_of(ast.unparse(node)) == me
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.withitem, ast.Return, ast.Yield)):
            return any(isinstance(n, ast.Name) and n.id == me for n in walk(node))  # by another name, from then on
        if not isinstance(node, ast.Call):
            return False
        if root_of(ast.unparse(node.func)) == me:
            return True
        handed = any(isinstance(n, ast.Name) and n.id == me for given in arguments(node) for n in walk(given))
        return handed and (not self._facts.called(node) or "builtins.setattr" in self._facts.called(node))

    @cached_property
    def _in_items(self) -> dict[str, list[tuple[ast.Call, ast.expr, ast.Name]]]:
        """What changes the things in an item, with its key and its container, by the name of that."""
        found: dict[str, list[tuple[ast.Call, ast.expr, ast.Name]]] = {}
        for use in self._facts.calls_anywhere:
            func = use.node.func
            if isinstance(func, ast.Attribute) and func.attr in _FILLING and (item := _item_of(func.value)):
                found.setdefault(item[1].id, []).append((use.node, *item))
        return found


def _item_of(node: ast.expr) -> tuple[ast.expr, ast.Name] | None:
    """The key and the container of an item: `groups[key]`, `groups.setdefault(key, [])`."""
    match node:
        case ast.Subscript(value=ast.Name() as container, slice=key):
            return key, container
        case ast.Call(func=ast.Attribute(value=ast.Name() as container, attr="setdefault"), args=[key, *_]):
            return key, container
    return None


def _whole(item: ast.Subscript) -> ast.expr:
    """The outermost container: `config` of `config["data"]["rows"]`."""
    container = item.value
    while isinstance(container, ast.Subscript):
        container = container.value
    return container


def _last(node: ast.expr) -> str:
    """The last name of an expression: `buffer` of `self.memory.buffer`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def shares(unit: Unit, name: str) -> bool:
    """Whether a function declares a name to be the module's."""
    return isinstance(unit, Function) and name in _shared(unit.node)


class Sharing(dict[tuple["Unit", str], list[Function]]):
    """For a name of a module or function the functions of it that declare the name to be that one, in their order."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        for unit in facts.functions:
            owners: tuple[Unit, ...] = (unit.module,) if unit.parent is None else (unit.module, unit.parent)
            for name in _shared(unit.node):
                for owner in owners:
                    self.setdefault((owner, name), []).append(unit)


@lru_cache(maxsize=1024)
def _shared(function: FunctionNode) -> frozenset[str]:
    declared = (node for node in own_nodes(function) if isinstance(node, (ast.Global, ast.Nonlocal)))
    return frozenset(name for node in declared for name in node.names)


def _item(made: ast.Dict, key: ast.expr) -> ast.expr | None:
    """The value of a key that is written out; None where another one may take its place, or none has it."""
    if None in made.keys:
        return None
    pairs = zip(made.keys, made.values, strict=True)
    return next((value for each, value in pairs if each is not None and ast.dump(each) == ast.dump(key)), None)
