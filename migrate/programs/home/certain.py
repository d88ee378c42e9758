"""Whether an object always lies where a name looks for it: prepare must not ask for what is only there at times."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from migrate.analysis.keys import paired_keys, written_in
from migrate.analysis.roles import Role, origins, texts
from migrate.analysis.rounds import decided
from migrate.analysis.state import KEYS
from migrate.analysis.syntax import FUNCTIONS, is_main_guard
from migrate.analysis.units import Module
from migrate.programs.values.sources import by_attribute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_AT_TIMES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler)
_BY_A_TEST = (ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.Try, ast.ExceptHandler, ast.Match)


_NO_TURNS: Mapping[ast.AST, str] = {}


def is_attribute_there(facts: Facts, key: str, role: Role, made: set[ast.AST]) -> bool:
    """Whether objects are always attributes of what holds them; those that a constructor sets unseen are."""
    named = facts.once(by_attribute).get(key, ())
    placed = [b.statement for b in named if origins(b.values, role) & made]
    return not placed or _is_certain(facts, placed)


def is_asked(facts: Facts, unit: Unit, owner: str, key: str, seen: set[Unit] | None = None) -> bool:
    """Whether a unit asks an object for an attribute, or has a method do so, with no test around it: it is there.

    `seen`: the methods that were looked into.
    """
    seen = set() if seen is None else seen
    if unit in seen:
        return False
    seen.add(unit)
    for node in facts.own(unit):
        if not isinstance(node, ast.Attribute) or ast.unparse(node.value) != owner or _is_tested(facts, node):
            continue
        if node.attr == key and isinstance(node.ctx, ast.Load):
            return True
        call = facts.tree(node).parents[node]
        for method in facts.targets(call) if isinstance(call, ast.Call) and call.func is node else ():
            if method.itself is not None and is_asked(facts, method, method.itself.arg, key, seen):
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
    if isinstance(source, (ast.Dict, ast.DictComp)):
        if _has_key(facts, container, key):
            return True
    elif isinstance(source, (ast.List, ast.ListComp)) or (
        isinstance(source, ast.Call) and (source.args or source.keywords)
    ):
        return True
    turns = {loop: text for origin in made for loop, text in facts.singles.turns(origin).items()}
    return _is_certain(facts, list(_items(facts, key, role, made)), turns)


def _has_key(facts: Facts, held: ast.AST, key: str) -> bool:
    """Whether a list has a key, or a dictionary was made with it."""
    source = facts.source(held)
    if isinstance(source, ast.DictComp):
        return any(value.origin is not None and _has_key(facts, value.origin, key) for value in facts.held(held, KEYS))
    written = getattr(source, "elts", written_in(source) or ())
    return key in paired_keys(source) or any(isinstance(each, ast.Constant) and each.value == key for each in written)


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
                if isinstance(target, ast.Subscript) and key in texts(facts.values(target.slice)):
                    assert isinstance(node, ast.Assign)
                    if origins(facts.values(node.value), role) & made:
                        yield node


def _is_certain(facts: Facts, placed: Sequence[ast.stmt], turns: Mapping[ast.AST, str] = _NO_TURNS) -> bool:
    """Whether one of some statements is always run: it stands under nothing, or they stand in both branches.

    `turns` are loops over keys that are written out, with the key of the one round that is asked for.
    """
    keys = {target.id: key for loop, key in turns.items() if isinstance(target := _key_of(loop), ast.Name)}
    sides: dict[ast.If, set[bool]] = {}
    for statement in placed:
        tree = facts.tree(statement)
        below: ast.AST = statement
        around: list[tuple[ast.AST, ast.AST]] = []
        for above in tree.up(statement):
            if isinstance(above, FUNCTIONS):
                break
            is_met = (above in turns or isinstance(above, ast.If)) and _is_always_met(above, keys)
            if isinstance(above, _AT_TIMES) and not is_main_guard(above) and not is_met:
                around.append((above, below))
            below = above
        if not around:
            return True
        outer, inner = around[-1]
        if isinstance(outer, ast.If):
            sides.setdefault(outer, set()).add(any(inner is each for each in outer.body))
    return any(len(both) == 2 for both in sides.values())


def _is_always_met(above: ast.AST, keys: Mapping[str, str]) -> bool:
    """Whether a round comes to all that it has to make: it leaves nothing out, and its key has decided the branch."""
    if isinstance(above, ast.If):
        return decided(above.test, keys) is not None
    return not any(isinstance(inner, ast.Continue) for inner in ast.walk(above))


def _key_of(loop: ast.AST) -> ast.AST | None:
    """The name of the key in a loop over keys or items."""
    target = loop.target if isinstance(loop, ast.For) else None
    return target.elts[0] if isinstance(target, ast.Tuple) else target
