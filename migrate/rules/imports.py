"""Imports that an edit leaves without a use."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


def drop_unused(conversion: Conversion, draft: Draft, gone: Iterable[ast.expr]) -> None:
    """Drop `from m import name` where every use of the name is among the expressions that go away: `name`, `name.x`."""
    names: dict[tuple[ast.Module, str], set[int]] = {}
    for expression in gone:
        node = expression
        while isinstance(node, ast.Attribute):
            node = node.value
        if isinstance(node, ast.Name):
            root = conversion.facts.tree(node).root
            names.setdefault((root, node.id), set()).add(id(node))
    for (root, name), ids in names.items():
        nodes = conversion.facts.tree(root).nodes
        read = {id(n) for n in nodes if isinstance(n, ast.Name) and n.id == name}
        exported = any(isinstance(n, ast.Constant) and n.value == name for n in nodes)
        if read != ids or exported:
            continue
        for statement in nodes:
            if _binds(statement, name):
                assert isinstance(statement, (ast.Import, ast.ImportFrom))
                draft.drop_import(statement, name)


def _binds(statement: ast.AST, name: str) -> bool:
    """Whether an import gives just that name: `from m import name`, `import m.n as name`."""
    if isinstance(statement, ast.ImportFrom):
        return any((alias.asname or alias.name) == name for alias in statement.names)
    return isinstance(statement, ast.Import) and any(alias.asname == name for alias in statement.names)
