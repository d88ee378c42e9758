"""Whether all objects of a class are in sight: they have local names only, so code that nothing calls has none."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Container

    from migrate.analysis.facts import Facts

_OBJECTS = frozenset({Role.INSTANCE, Role.MODEL, Role.CRITERION})


def are_in_hand(facts: Facts, cls: Class, run: Container[ast.AST]) -> bool:
    """Whether the objects of a class go from local names to other such names only, and only code that is run makes any.

    `run`: the calls in code that is run.
    """
    nodes = facts.once(_naming)
    return all(_is_made_in_sight(facts, node, cls, run) for node in nodes) and all(
        _goes_to_name(facts, node)
        for node in nodes
        if not isinstance(node, (ast.ClassDef, ast.alias)) and _is_one(facts, node, cls)
    )


def _naming(facts: Facts) -> list[ast.AST]:
    """What may stand for an object or a class."""
    return [
        node
        for module in facts.modules
        for node in facts.tree_of(module).nodes
        if isinstance(node, (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.ClassDef, ast.alias))
    ]


def _is_made_in_sight(facts: Facts, node: ast.AST, cls: Class, run: Container[ast.AST]) -> bool:
    """Whether what names the class, if a node does, is a call that is run, or only looks at it."""
    if isinstance(node, ast.alias):
        return node.name.rpartition(".")[2] != cls.name or node.asname in (None, cls.name)
    if isinstance(node, ast.ClassDef):
        return not any(getattr(base, "attr", getattr(base, "id", "")) == cls.name for base in node.bases)
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
        return True
    if getattr(node, "attr", getattr(node, "id", "")) != cls.name:
        return True
    above = facts.tree(node).parents[node]
    if not isinstance(above, ast.Call):
        return False
    return above in run if node is above.func else "builtins.super" in facts.called(above)


def _is_one(facts: Facts, node: ast.AST, cls: Class) -> bool:
    return any(value.role in _OBJECTS and value.unit is cls for value in facts.values(node))


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
