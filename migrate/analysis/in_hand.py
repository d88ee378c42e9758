"""Whether all objects of a class are in sight: they have local names only, so code that nothing calls has none."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts

_OBJECTS = frozenset({Role.INSTANCE, Role.MODEL, Role.CRITERION})


def are_in_hand(facts: Facts, cls: Class, run: Container[ast.AST]) -> bool:
    """Whether the objects of a class go from local names to other such names only, and only code that is run makes any.

    `run`: the calls in code that is run.
    """
    naming = facts.once(_naming).get(cls.name, ())
    return all(_is_made_in_sight(facts, node, cls, run) for node in naming) and all(
        _goes_to_name(facts, node) for node in facts.once(_standing).get(cls, ())
    )


def _naming(facts: Facts) -> Mapping[str, Sequence[ast.AST]]:
    """What stands for a class, by the name: it is imported, or read."""
    found: dict[str, list[ast.AST]] = {}
    for node in _nodes(facts):
        match node:
            case ast.alias(name=name):
                found.setdefault(name.rpartition(".")[2], []).append(node)
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                found.setdefault(name, []).append(node)
    return found


def _standing(facts: Facts) -> Mapping[Class, Sequence[ast.AST]]:
    """What may be an object of a class of the project, by the class."""
    found: dict[Class, list[ast.AST]] = {}
    for node in _nodes(facts):
        if not isinstance(node, ast.alias):
            classes = {v.unit for v in facts.values(node) if v.role in _OBJECTS and isinstance(v.unit, Class)}
            for cls in classes:
                found.setdefault(cls, []).append(node)
    return found


def _nodes(facts: Facts) -> Iterator[ast.AST]:
    kinds = (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.alias)
    return (node for module in facts.modules for node in facts.tree_of(module).nodes if isinstance(node, kinds))


def _is_made_in_sight(facts: Facts, node: ast.AST, cls: Class, run: Container[ast.AST]) -> bool:
    """Whether what names the class is a call that is run, or only looks at it."""
    if isinstance(node, ast.alias):
        return node.asname in (None, cls.name)
    above = facts.tree(node).parents[node]
    if not isinstance(above, ast.Call):  # a class that derives from it is another
        return False
    return above in run if node is above.func else "builtins.super" in facts.called(above)


def _goes_to_name(facts: Facts, node: ast.AST) -> bool:
    """Whether what stands here is asked for something, handed to a function of the project, or given a local name."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return False
    is_local = isinstance(facts.unit(node), Function)
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return is_local
    parents = facts.tree(node).parents
    above = parents[node]
    if isinstance(above, ast.keyword):
        above = parents[above]
    if isinstance(above, ast.Call):
        if facts.called(above):
            return "builtins.super" in facts.called(above)
        return node is not above.func and bool(facts.targets(above))
    if isinstance(above, ast.Assign):
        return is_local and all(isinstance(target, ast.Name) for target in above.targets)
    return isinstance(above, (ast.Attribute, ast.Expr, ast.Compare))
