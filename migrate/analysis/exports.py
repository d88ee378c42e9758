"""What a file binds at its top level, and what `from module import *` takes of it: read off the text."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from migrate.analysis.nodes import children
from migrate.analysis.syntax import DEFINITIONS, is_main_guard, statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.units import Module


def may_bind(module: Module, name: str) -> bool:
    """Whether the text of a file gives a name a value at its top level, or declares it `global` in a function."""
    return name in _bound(module.tree) or (b"global" in module.file.content and name in _declared(module.tree))


@lru_cache(maxsize=1024)
def _declared(tree: ast.Module) -> frozenset[str]:
    return frozenset(name for node in statements(tree) if isinstance(node, ast.Global) for name in node.names)


@lru_cache(maxsize=1024)
def _bound(tree: ast.Module) -> frozenset[str]:
    return _bound_in(tree.body)


@lru_cache(maxsize=1024)
def _bound_in_scripts(tree: ast.Module) -> frozenset[str]:
    """What is given a value under `if __name__ == "__main__":` alone: a module that is imported does not have it."""
    guards = [statement for statement in tree.body if isinstance(statement, ast.If) and is_main_guard(statement)]
    if not guards:
        return frozenset()
    imported = [each for each in tree.body if each not in guards] + [each for guard in guards for each in guard.orelse]
    return _bound_in(each for guard in guards for each in guard.body) - _bound_in(imported)


def _bound_in(block: Iterable[ast.stmt]) -> frozenset[str]:
    found: set[str] = set()
    waiting: list[ast.AST] = list(block)
    while waiting:
        node = waiting.pop()
        if isinstance(node, DEFINITIONS):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name is not None:
            found.add(node.name)
        waiting.extend(children(node))
    return frozenset(found)


@lru_cache(maxsize=1024)
def listed(tree: ast.Module) -> frozenset[str] | None:
    """What `__all__` lists; None where there is none, or it is not written out."""
    names: set[str] | None = None
    for statement in tree.body:
        value = _given(statement)
        if value is None:
            continue
        if not isinstance(value, (ast.List, ast.Tuple)):
            return None
        texts = [e.value for e in value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        if len(texts) != len(value.elts):
            return None
        names = {*(names or ()), *texts}
    return frozenset(names) if names is not None else None


def _given(statement: ast.stmt) -> ast.expr | None:
    """What a statement makes `__all__`, or adds to it."""
    if isinstance(statement, ast.Assign):
        return statement.value if any(_is_all(target) for target in statement.targets) else None
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        return statement.value if _is_all(statement.target) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and _is_all(call.func.value) and call.args:
        return ast.List([call.args[0]], ast.Load()) if call.func.attr == "append" else call.args[0]
    return None


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"


def is_exported(tree: ast.Module, name: str) -> bool:
    """Whether `from module import *` takes a name."""
    names = listed(tree)
    return name in names if names is not None else not name.startswith("_") and name not in _bound_in_scripts(tree)
