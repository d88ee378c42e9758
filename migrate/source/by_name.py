"""What a file imports by name, `import_module("engine")`, as far as its own text says which names these are."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.source.reach import BY_NAME

if TYPE_CHECKING:
    from migrate.source.project import SourceFile

_FUNCTIONS = frozenset(word.decode() for word in BY_NAME)


def imported_by_name(file: SourceFile) -> tuple[str, ...] | None:
    """The modules that are imported so, in order; None where any may be meant."""
    if not any(word in file.content for word in BY_NAME):
        return ()
    if file.error:
        return None
    nodes = list(ast.walk(file.tree))
    calls = [node for node in nodes if isinstance(node, ast.Call) and _name(node.func) in _FUNCTIONS]
    called = {id(call.func) for call in calls}
    if any(_is_handed_on(node) and id(node) not in called for node in nodes):
        return None
    found: set[str] = set()
    for call in calls:
        names = _texts(call.args[0]) if call.args else None
        if names is None or any(name.startswith(".") for name in names):
            return None
        found |= names
    return tuple(sorted(found))


def _is_handed_on(node: ast.AST) -> bool:
    """Whether one of the functions is meant other than by calling it; its import under its own name is not."""
    if isinstance(node, ast.alias):
        return node.name.rpartition(".")[2] in _FUNCTIONS and node.asname not in (None, node.name)
    if isinstance(node, ast.Constant):
        return node.value in _FUNCTIONS
    return isinstance(node, (ast.Name, ast.Attribute)) and _name(node) in _FUNCTIONS


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.expr) -> set[str] | None:
    """Every text that an expression may be, where it is made of texts that are written out."""
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else None
    if isinstance(node, ast.IfExp):
        body, orelse = _texts(node.body), _texts(node.orelse)
        return None if body is None or orelse is None else body | orelse
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _texts(node.left), _texts(node.right)
        return None if left is None or right is None else {one + other for one in left for other in right}
    return None
