"""Whether an object always lies where a name looks for it: prepare must not ask for what is only there at times."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import FUNCTIONS, is_main_guard
from migrate.analysis.units import Module
from migrate.programs.values.sources import by_attribute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_AT_TIMES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler)
_BY_A_TEST = (ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.Try, ast.ExceptHandler, ast.Match)


def is_attribute_there(facts: Facts, key: str, role: Role, made: set[ast.AST]) -> bool:
    """Whether objects are always attributes of what holds them; those that a constructor sets unseen are."""
    named = facts.once(by_attribute).get(key, ())
    placed = [b.statement for b in named if origins(b.values, role) & made]
    return not placed or _is_certain(facts, placed)


def is_asked(facts: Facts, unit: Unit, owner: str, key: str, seen: frozenset[Unit] = frozenset()) -> bool:
    """Whether a unit asks an object for an attribute, or has a method do so, with no test around it: it is there."""
    for node in facts.own(unit) if unit not in seen else ():
        if not isinstance(node, ast.Attribute) or ast.unparse(node.value) != owner or _is_tested(facts, node):
            continue
        if node.attr == key and isinstance(node.ctx, ast.Load):
            return True
        call = facts.tree(node).parents[node]
        for method in facts.targets(call) if isinstance(call, ast.Call) and call.func is node else ():
            if method.itself is not None and is_asked(facts, method, method.itself.arg, key, seen | {unit}):
                return True
    return False


def _is_tested(facts: Facts, node: ast.AST) -> bool:
    for above in facts.tree(node).up(node):
        if isinstance(above, FUNCTIONS):
            break
        if isinstance(above, _BY_A_TEST) and not is_main_guard(above):
            return True
    return False


def is_item_there(facts: Facts, container: ast.AST, key: str, role: Role, made: set[ast.AST]) -> bool:
    """Whether objects always lie in a container under a key: it was made with them, or they were put there."""
    source = facts.source(container)
    if isinstance(source, ast.Dict):
        if any(isinstance(each, ast.Constant) and each.value == key for each in source.keys):
            return True
    elif isinstance(source, ast.List) or (isinstance(source, ast.Call) and (source.args or source.keywords)):
        return True
    return _is_certain(facts, list(_items(facts, key, role, made)))


def is_name_there(facts: Facts, name: str, role: Role, made: set[ast.AST]) -> bool:
    """Whether a module, or the one that it imports from, always gives objects their name."""
    by_object = facts.once(_InModules)
    named = [each for origin in made for each in by_object.get((role, origin), ())]
    mine = [statement for target, statement in named if target == name.rpartition(".")[2]]
    return _is_certain(facts, mine or [statement for _, statement in named])


class _InModules(dict[tuple[Role, ast.AST], list[tuple[str, ast.stmt]]]):
    """The statements of modules that give an object a name, with the name, by its role and where it was made."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        for binding in facts.bindings:
            for value in binding.values if isinstance(binding.unit, Module) else ():
                if value.origin is not None:
                    place = self.setdefault((value.role, value.origin), [])
                    place.append((binding.target, binding.statement))


def _items(facts: Facts, key: str, role: Role, made: set[ast.AST]) -> Iterator[ast.stmt]:
    for module in facts.modules:
        for node in facts.tree_of(module).nodes:
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                    assert isinstance(node, ast.Assign)
                    if target.slice.value == key and origins(facts.values(node.value), role) & made:
                        yield node


def _is_certain(facts: Facts, placed: Sequence[ast.stmt]) -> bool:
    """Whether one of some statements is always run: it stands under nothing, or they stand in both branches."""
    sides: dict[ast.If, set[bool]] = {}
    for statement in placed:
        tree = facts.tree(statement)
        below: ast.AST = statement
        around: list[tuple[ast.AST, ast.AST]] = []
        for above in tree.up(statement):
            if isinstance(above, FUNCTIONS):
                break
            if isinstance(above, _AT_TIMES) and not is_main_guard(above):
                around.append((above, below))
            below = above
        if not around:
            return True
        outer, inner = around[-1]
        if isinstance(outer, ast.If):
            sides.setdefault(outer, set()).add(any(inner is each for each in outer.body))
    return any(len(both) == 2 for both in sides.values())
