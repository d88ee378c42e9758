"""What stands under one key of a dictionary: `config["epochs"]`, beside which a clock may give `config["started"]`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import targets_of
from migrate.programs.processes.group_settings import is_same_setting
from migrate.programs.values.stars import starred

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
    from migrate.programs.processes.sameness import Sameness
    from migrate.programs.values.fillings import Filling

#: What changes one item, the key of which is the first argument.
_BY_KEY = frozenset({"pop", "setdefault"})
_COPIES = frozenset({"copy.copy", "copy.deepcopy"})


@dataclass(frozen=True, slots=True)
class Item:
    """What is asked for of a container: only what stands under a key."""

    key: str


def item_of(node: ast.expr) -> tuple[ast.expr, Item] | None:
    """The container and the key of `config["epochs"]` and `config.get("epochs", 3)`."""
    match node:
        case ast.Subscript(value=container, slice=ast.Constant(value=str(key))):
            return container, Item(key)
        case ast.Call(func=ast.Attribute(value=container, attr="get"), args=[ast.Constant(value=str(key)), *_]):
            return container, Item(key)
    return None


def is_same_item(facts: Facts, sameness: Sameness, node: ast.expr, item: Item) -> bool:
    """Whether what stands under a key of a container is the same on all processes, as far as the key tells it apart."""
    if not sameness.trusting and is_same_setting(facts, sameness, node, item.key):
        return True
    if Role.INSTANCE in roles(facts.values(node)):
        return sameness.same(node)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return sameness.named(node, value=item)
    if isinstance(node, ast.IfExp):
        return sameness.same(node.test) and all(sameness.item(each, item) for each in (node.body, node.orelse))
    if (parts := _taken_over(facts, node, item.key)) is not None:
        given, taken_in = parts
        return all(map(sameness.same, given)) and all(sameness.item(each, item) for each in taken_in)
    targets = facts.targets(node) if isinstance(node, ast.Call) and sameness.trusting else []
    if not isinstance(node, ast.Call) or not targets or Role.MODEL in roles(facts.values(node.func)):
        return sameness.same(node)
    return all(map(sameness.same, starred(node))) and all(_gives(facts, sameness, unit, item) for unit in targets)


def _gives(facts: Facts, sameness: Sameness, unit: Function, item: Item) -> bool:
    """Whether what a function of the project gives has the same under a key, for what all of its callers pass."""
    own = facts.own(unit)
    if isinstance(unit.node, ast.Lambda) or any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own):
        return sameness.gives_same(unit)
    returned = [node for node in own if isinstance(node, ast.Return)]
    given = [node.value for node in returned if node.value is not None]
    return all(sameness.item(each, item) for each in given) and all(sameness.alike(n, deep=False) for n in returned)


def _taken_over(facts: Facts, node: ast.expr, key: str) -> tuple[list[ast.expr], list[ast.expr]] | None:
    """What a dictionary that is made here has under a key, and what it takes in; None: it is no such thing.

    `{"epochs": 3, **rest}`, `dict(rest, epochs=3)`, `copy.deepcopy(rest)`, `rest.copy()`.
    """
    if isinstance(node, ast.Dict):
        return _written(node, key)
    if not isinstance(node, ast.Call):
        return None
    names = facts.called(node)
    if names == {"builtins.dict"}:
        given = [each.value for each in node.keywords if each.arg == key]
        return given, [*node.args, *(each.value for each in node.keywords if each.arg is None)]
    if names and names <= _COPIES:
        return [], node.args[:1]
    if not isinstance(node.func, ast.Attribute) or names or facts.targets(node):
        return None
    return ([], [node.func.value]) if node.func.attr == "copy" and not node.args else None


def _written(made: ast.Dict, key: str) -> tuple[list[ast.expr], list[ast.expr]]:
    """What a dictionary as it is written gives for a key, and the dictionaries that it takes in."""
    given, taken_in = list[ast.expr](), list[ast.expr]()
    for each, value in zip(made.keys, made.values, strict=True):
        if each is None:
            taken_in.append(value)
        elif not isinstance(each, ast.Constant) or each.value == key:
            given.append(value)
    return given, taken_in


def leaves(filling: Filling, key: str) -> bool:
    """Whether what changes things in a container leaves what stands under a key."""
    if not isinstance(filling, ast.Call):
        keys = [_first(target) for target in targets_of(filling) if isinstance(target, ast.Subscript)]
        return bool(keys) and all(each is not None and each != key for each in keys)
    by = filling.func.attr if isinstance(filling.func, ast.Attribute) else ""
    if by in _BY_KEY and filling.args:
        first = filling.args[0]
        return isinstance(first, ast.Constant) and first.value != key
    if by != "update" or not (filling.args or filling.keywords):
        return False
    tables = [each for each in filling.args if isinstance(each, ast.Dict)]
    if len(tables) < len(filling.args) or any(each.arg in (None, key) for each in filling.keywords):
        return False
    return all(_written(table, key) == ([], []) for table in tables)


def _first(target: ast.Subscript) -> object:
    """The key of the outermost container in `config["data"]["rows"] = x`; None where it is not written out."""
    inner: ast.expr = target
    key: ast.expr = target.slice
    while isinstance(inner, ast.Subscript):
        key, inner = inner.slice, inner.value
    return key.value if isinstance(key, ast.Constant) else None
