"""The functions of a file, each with a name that tells them apart."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

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
