"""Attributes and items with a constant key, as places that keep a number: by what is written they are one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


def is_place(node: ast.expr) -> bool:
    """Whether an expression is a name, an attribute, or an item whose key is written out."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and is_place(node.value)
    if isinstance(node, ast.Attribute):
        return is_place(node.value)
    return isinstance(node, ast.Name)


def sets(statement: ast.Assign | ast.AnnAssign, name: str) -> bool:
    """Whether a statement gives a place its value, or makes the dictionary that it is an item of."""
    wholes = {name, name.partition("[")[0]}
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(
        isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(node) in wholes and _is_stored(node)
        for target in targets
        for node in ast.walk(target)
    )


def _is_stored(node: ast.Name | ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store)


def is_read(parents: Mapping[ast.AST, ast.AST], node: ast.AST, name: str) -> bool:
    """Whether a node reads a place, or the dictionary that it is an item of; `self.total` on any object."""
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.op, ast.Add) and ast.unparse(node.target) == name
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
        return False
    if "[" not in name:
        return isinstance(node, ast.Attribute) and node.attr == name.rpartition(".")[2]
    above = parents.get(node)
    if isinstance(above, ast.Subscript) and isinstance(above.slice, ast.Constant) and node is above.value:
        return False
    return ast.unparse(node) in (name, name.partition("[")[0])


def divisors_of(nodes: Collection[ast.AST], name: str) -> Iterator[ast.expr]:
    """What a place is divided by, or anything that is taken from its dictionary."""
    attribute, taken = name.rpartition(".")[2], _taken(nodes, name.partition("[")[0])
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            divided, divisor = node.left, node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            divided, divisor = node.target, node.value
        else:
            continue
        parts = list(ast.walk(divided))
        if name.isidentifier():
            is_meant = any(isinstance(part, ast.Name) and part.id == name for part in parts)
        elif "[" not in name:
            is_meant = any(isinstance(part, ast.Attribute) and part.attr == attribute for part in parts)
        else:
            is_meant = any(_is_item(part, name, taken) for part in parts)
        if is_meant:
            yield divisor


def _taken(nodes: Collection[ast.AST], base: str) -> set[str]:
    """The names of what is taken from a dictionary one by one: `for key, value in log.items()`."""
    return {
        inner.id
        for node in nodes
        if isinstance(node, (ast.For, ast.comprehension)) and base in map(ast.unparse, _expressions(node.iter))
        for inner in ast.walk(node.target)
        if isinstance(inner, ast.Name)
    }


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    return (inner for inner in ast.walk(node) if isinstance(inner, (ast.Name, ast.Attribute)))


def _is_item(node: ast.AST, name: str, taken: Collection[str]) -> bool:
    """Whether a node is an item of a dictionary, or may be: `log[key]`, `value`."""
    if isinstance(node, ast.Name):
        return node.id in taken
    if not isinstance(node, ast.Subscript) or ast.unparse(node.value) != name.partition("[")[0]:
        return False
    return not isinstance(node.slice, ast.Constant) or ast.unparse(node) == name
