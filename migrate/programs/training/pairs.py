"""Loops over phases with their loaders: `for phase, loader in [("train", train_loader), ("val", val_loader)]:`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

_DEEPEST = 4  # names that hand pairs on


def dealt(facts: Facts, name: ast.Name) -> list[dict[str, ast.expr]]:
    """What the names are given in each round of the loop around a name which deals them out; empty: not in sight."""
    for loop in facts.tree(name).loops(name):
        target = loop.target if isinstance(loop, ast.For) else None
        if isinstance(loop, ast.For) and isinstance(target, (ast.Tuple, ast.List)):
            names = [part.id for part in target.elts if isinstance(part, ast.Name)]
            if name.id in names and len(names) == len(target.elts):
                rows = _rows(facts, loop.iter)
                return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]
    return []


def by_key(facts: Facts, name: ast.Name, key: ast.Name) -> list[dict[str, ast.expr]]:
    """The same of a name that is taken out of a dictionary by another one: `loader = loaders[phase]`."""
    item = facts.once(Sources).given(name).only
    if not isinstance(item, ast.Subscript):
        return []
    return [{key.id: each, name.id: value} for each, value in items_by(facts, item, key)]


def items_by(facts: Facts, item: ast.Subscript, key: ast.Name) -> list[tuple[ast.expr, ast.expr]]:
    """Keys and values of the dictionary out of which a name takes an item: `loaders[phase]`; empty: not in sight."""
    return _literal(facts, item.value) if ast.unparse(item.slice) == key.id else []


def container(facts: Facts, node: ast.expr) -> ast.AST | None:
    """Where the one list or dictionary was made that an expression is."""
    made = [value.origin for value in facts.values(node) if value.role is Role.CONTAINER]
    return made[0] if len(made) == 1 else None


def _rows(facts: Facts, node: ast.expr, depth: int = _DEEPEST) -> list[list[ast.expr]]:
    if isinstance(node, ast.Name):
        given = facts.once(Sources).given(node).only
        return _rows(facts, given, depth - 1) if given is not None and depth else []
    if isinstance(node, (ast.Tuple, ast.List)):
        rows = [each.elts for each in node.elts if isinstance(each, (ast.Tuple, ast.List))]
        return rows if len(rows) == len(node.elts) else []
    if not isinstance(node, ast.Call):
        return []
    if "builtins.zip" in facts.called(node):
        columns = [each.elts for each in node.args if isinstance(each, (ast.Tuple, ast.List))]
        return [list(row) for row in zip(*columns, strict=False)] if len(columns) == len(node.args) else []
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "items":
        return []
    return [[key, value] for key, value in _literal(facts, node.func.value)]


def _literal(facts: Facts, node: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The keys of a dictionary that is written out, with what is under them."""
    held = container(facts, node)
    if not isinstance(held, ast.Dict) or None in held.keys:
        return []
    return [(key, value) for key, value in zip(held.keys, held.values, strict=True) if key is not None]
