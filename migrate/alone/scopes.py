"""The functions of a file, each with a name that tells them apart, and the code that is their own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.nodes import Nodes, children
from migrate.analysis.syntax import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)


def scopes(root: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The module and each function in it, with a name that tells them apart."""
    yield "", root
    yield from _inner(root, "")


def _inner(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in (statement for block in blocks(node) for statement in block):
        if isinstance(child, (*_DEFS, ast.ClassDef)):
            name = f"{prefix}.{child.name}"
            if isinstance(child, _DEFS):
                yield name, child
            yield from _inner(child, name)
        else:
            yield from _inner(child, prefix)


def own(tree: ast.AST) -> Nodes:
    """The nodes of a scope that are not those of a function or class in it; kept, as by `walk`."""
    kept: tuple[ast.AST, Nodes] | None = vars(tree).get("_scope")
    if kept is not None and kept[0] is tree and kept[1]:
        return kept[1]
    found: list[ast.AST] = []
    waiting = children(tree)
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, (*_DEFS, ast.ClassDef, ast.Lambda)):
            waiting += children(node)
    vars(tree)["_scope"] = tree, (nodes := Nodes(found))
    return nodes
